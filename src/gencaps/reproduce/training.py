"""Trains the runs behind claims: what is there is taken, what was stopped is resumed, what is missing is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from gencaps.data.images import Splits
from gencaps.data.splits import split_record
from gencaps.engine.checkpoint import load_state
from gencaps.engine.config import plain
from gencaps.engine.evaluate import evaluate
from gencaps.engine.pretrained import from_pretrained
from gencaps.engine.recipe import Recipe, make_recipe
from gencaps.engine.run import Run
from gencaps.engine.train import Trained, has_ended, load_splits, resume, start
from gencaps.errors import GencapsError
from gencaps.files import alone, write_atomically
from gencaps.reproduce.claims import TrainingRun

SMOKE_EPOCHS, SMOKE_FACES = 1, 60
ATTRIBUTE_SETS = ("celeba", "faces", "multimnist")


def overrides(settings: dict[str, object]) -> dict[str, dict[str, object]]:
    """Sorts ``{"model.x": 1}`` into sections."""
    sorted_: dict[str, dict[str, object]] = {"model": {}, "train": {}}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        if section not in sorted_ or not key:
            raise GencapsError(f"'{name}' is no setting of a run: write model.X or train.X")
        sorted_[section][key] = value
    return sorted_


def recipe_of(run: TrainingRun, seed: int, *, smoke: bool = False) -> Recipe:
    """Gives the recipe of one seed of a run; smoke is its small version, seconds on a CPU, on data that comes along."""
    if run.missing is not None:
        raise GencapsError(f"the run '{run.name}' cannot be trained: {run.missing}")
    settings: dict[str, object] = dict(run.settings)
    if not smoke:
        return make_recipe(run.system, preset=run.preset, data=run.data, seed=seed, overrides=overrides(settings))
    settings.pop("train.size", None)
    # data of the same kind: faces have attributes and digits have classes
    data = f"faces:{SMOKE_FACES}" if run.data in ATTRIBUTE_SETS else "digits"
    if run.data in ATTRIBUTE_SETS:
        settings["train.size"] = 32
    small = {**settings, "train.epochs": SMOKE_EPOCHS, "train.valid": 0.0, "train.samples_every": 0}
    recipe = make_recipe(run.system, preset="small", data=data, seed=seed, overrides=overrides(small))
    # a stage that has a number of epochs of its own
    own = [name for name, value in plain(recipe.model).items() if name.endswith("_epochs") and value is not None]
    return replace(recipe, model=replace(recipe.model, **dict.fromkeys(own, SMOKE_EPOCHS)))


def ensure_trained(recipe: Recipe, path: Path, *, device: str = "auto", quiet: bool = False) -> Trained:
    """Gives the finished run in a folder: trained now, resumed, or found there; by one process at a time."""
    with alone(path):
        return _ensure_trained(recipe, path, device, quiet)


def _ensure_trained(recipe: Recipe, path: Path, device: str, quiet: bool) -> Trained:
    if not (path / "config.yaml").exists():
        trained = start(recipe, path, device=device, quiet=quiet)
    else:
        run = Run.open(path)
        _refuse_other(run, recipe)
        if has_ended(path, load_state(path)):
            return load_trained(run, device)
        trained = resume(path, device=device, quiet=quiet)
    assert trained is not None  # one process trains here
    figures = evaluate(trained.model, trained.splits.test).figures()
    write_atomically(path / "evaluation.json", json.dumps(figures, indent=2) + "\n")
    return trained


def load_trained(run: Run, device: str = "auto") -> Trained:
    """Loads a finished run with the data that it was trained on."""
    from gencaps.engine.devices import choose_device

    splits = load_splits(run.recipe)
    _refuse_other_data(run, splits)
    return Trained(run, from_pretrained(run.path, choose_device(device)), splits)


def _refuse_other(run: Run, recipe: Recipe) -> None:
    for section in ("model", "train"):
        here, wanted = plain(getattr(run.recipe, section)), plain(getattr(recipe, section))
        for name in wanted:
            if here.get(name) != wanted[name]:
                raise GencapsError(
                    f"{run.path} was trained with {section}.{name} {here.get(name)}, and the claim asks for "
                    f"{wanted[name]}: move it away, or give another --runs"
                )
    for name in ("paper", "data", "seed"):
        if getattr(run.recipe, name) != getattr(recipe, name):
            raise GencapsError(f"{run.path} is a run of another {name}: move it away, or give another --runs")


def _refuse_other_data(run: Run, splits: Splits) -> None:
    recorded = run.facts().get("split")
    if recorded is not None and recorded != split_record(splits):
        raise GencapsError(f"the data '{run.recipe.data}' is not what {run.path} was trained on: put it back")


def training_seconds(run: Run) -> float:
    """Adds up the seconds of all epochs, the compiler's among them."""
    return sum(row["seconds"] for row in run.rows() if row.get("split") == "train" and "seconds" in row)
