"""Starting a run and going on with one: what stands around the loop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml
from lightning_fabric import Fabric

from gencaps import data
from gencaps.data.images import Splits
from gencaps.engine.check import check, check_state, check_unchanged
from gencaps.engine.checkpoint import load_state
from gencaps.engine.devices import make_fabric
from gencaps.engine.fit import fit
from gencaps.engine.pretrained import WEIGHTS
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
    Run.refuse_used(path)
    fabric.launch()

    def prepare() -> Splits:
        splits = load_splits(recipe, progress=fabric.is_global_zero and not quiet)
        if fabric.is_global_zero:
            # before the folder: what cannot be trained must leave nothing behind
            check(recipe, splits, fabric.device, fabric.world_size)
            for note in () if quiet else splits.train.notes:
                print(f"note: {note}", file=sys.stderr)
            values, facts = yaml.safe_load(recipe.to_yaml()), environment(fabric.device.type)
            record = {"command": command_line(), "environment": facts, "recipe": values}
            Run.create(path, recipe).record(**record, split=data.split_record(splits))
        return splits

    splits = _in_turn(fabric, prepare)
    return None if splits is None else _train(Run.open(path), splits, fabric, None, quiet)


def has_ended(path: Path, state: dict[str, Any] | None) -> bool:
    """Says whether a run has ended: it is trained, and evaluated, which is done last.

    Args:
        path: of the run.
        state: its last checkpoint; it may have been thrown away since.
    """
    trained = (path / WEIGHTS).exists() if state is None else state["position"]["finished"]
    return trained and (path / "evaluation.json").exists()


def resume(path: Path, *, device: str = "auto", devices: int = 1, quiet: bool = False) -> Trained | None:
    """Goes on with a run from its last checkpoint."""
    run = Run.open(path)
    fabric = make_fabric(device, devices, run.recipe.train.precision)
    state = load_state(path)
    if state is not None and not {"position", "model", "average", "team"} <= state.keys():
        raise GencapsError(f"the checkpoint in {path} is not of a training run: start a new one")
    if has_ended(path, state):
        raise GencapsError(
            f"{path} is finished: gencaps evaluate {path} looks at it; to train longer, start a new run with "
            f"--config {path / 'config.yaml'} --train.epochs N"
        )
    check_unchanged(run)
    fabric.launch()

    def prepare() -> Splits:
        splits = load_splits(run.recipe, progress=fabric.is_global_zero and not quiet)
        recorded = run.facts().get("split")
        if recorded is not None and recorded != data.split_record(splits):
            raise GencapsError(
                f"the data '{run.recipe.data}' is not what {path} was started with: put it back, or start a new run"
            )
        model = check(run.recipe, splits, fabric.device, fabric.world_size)
        if state is not None:
            check_state(state, model, path)
        return splits

    splits = _in_turn(fabric, prepare)
    return None if splits is None else _train(run, splits, fabric, state, quiet)


def _in_turn(fabric: Fabric, prepare: Callable[[], Splits]) -> Splits | None:
    """Lets the first process download and decode what is missing, and the others find it done.

    What is wrong is told by the first process alone; the others get ``None`` and leave.
    """
    splits, fault = None, None
    if fabric.is_global_zero:
        try:
            splits = prepare()
        except GencapsError as error:
            fault = error
    if fabric.broadcast(fault is not None):
        _part(fabric)
        if fault is not None:
            raise fault
        return None
    return prepare() if splits is None else splits


def _part(fabric: Fabric) -> None:
    """Lets processes go their own ways, together: who ends while another thread still listens for others may abort."""
    if fabric.world_size > 1:
        fabric.barrier()
        torch.distributed.destroy_process_group()


def _train(run: Run, splits: Splits, fabric: Fabric, state: dict[str, Any] | None, quiet: bool) -> Trained | None:
    if fabric.is_global_zero:
        for leftover in run.path.glob(".*.*"):
            if leftover.is_file():
                leftover.unlink(missing_ok=True)  # half a file that a kill left behind
    model = fit(run, splits, fabric, resumed=state, quiet=quiet)
    _part(fabric)
    return Trained(run, model, splits) if fabric.is_global_zero else None
