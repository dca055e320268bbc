"""Starting a run and going on with one: what stands around the loop."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from lightning_fabric import Fabric

from gencaps import data
from gencaps.data.images import Splits
from gencaps.engine.checkpoint import load_state
from gencaps.engine.devices import make_fabric
from gencaps.engine.fit import fit
from gencaps.engine.recipe import Recipe
from gencaps.engine.run import Run, command_line, environment
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel


class Trained(NamedTuple):
    """A finished run with its model and its data."""

    run: Run
    model: CapsuleModel
    splits: Splits


def load_splits(recipe: Recipe, *, progress: bool = False) -> Splits:
    """Loads a recipe's data as it is split for training."""
    train = recipe.train
    return data.load(recipe.data, size=train.size, valid=train.valid, seed=recipe.seed, progress=progress)


def start(recipe: Recipe, path: Path, *, device: str = "auto", devices: int = 1, quiet: bool = False) -> Trained | None:
    """Trains a new run into a folder; helper processes of a run on several devices get ``None``."""
    fabric = make_fabric(device, devices, recipe.train.precision)
    fabric.launch()
    splits = _load_in_turn(recipe, fabric, quiet)  # before the folder: wrong data must leave nothing behind
    if fabric.is_global_zero:
        run = Run.create(path, recipe)
        facts = environment(fabric.device.type)
        run.record(command=command_line(), environment=facts, split=data.split_record(splits))
    fabric.barrier()
    return _train(Run.open(path), splits, fabric, quiet)


def resume(path: Path, *, device: str = "auto", devices: int = 1, quiet: bool = False) -> Trained | None:
    """Goes on with a run from its last checkpoint."""
    run = Run.open(path)
    state = load_state(path)
    if state is not None and state["position"]["finished"]:
        raise GencapsError(
            f"{path} is finished: gencaps evaluate {path} looks at it; to train longer, start a new run with "
            f"--config {path / 'config.yaml'} --train.epochs N"
        )
    fabric = make_fabric(device, devices, run.recipe.train.precision)
    fabric.launch()
    splits = _load_in_turn(run.recipe, fabric, quiet)
    recorded, found = run.facts().get("split"), data.split_record(splits)
    if recorded is not None and recorded != found:
        raise GencapsError(
            f"the data '{run.recipe.data}' is not what {path} was started with: put it back, or start a new run"
        )
    return _train(run, splits, fabric, quiet)


def _load_in_turn(recipe: Recipe, fabric: Fabric, quiet: bool) -> Splits:
    """Lets the first process download and decode what is missing, and the others find it done."""
    if not fabric.is_global_zero:
        fabric.barrier()
    splits = load_splits(recipe, progress=fabric.is_global_zero and not quiet)
    if fabric.is_global_zero:
        fabric.barrier()
    return splits


def _train(run: Run, splits: Splits, fabric: Fabric, quiet: bool) -> Trained | None:
    if fabric.is_global_zero:
        for leftover in run.path.glob(".*.*"):
            if leftover.is_file():
                leftover.unlink(missing_ok=True)  # half a file that a kill left behind
    model = fit(run, splits, fabric, quiet=quiet)
    return Trained(run, model, splits) if fabric.is_global_zero else None
