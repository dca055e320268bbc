"""Refuses what cannot be trained, before a run folder is made for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import yaml
from torch.nn.modules.batchnorm import _BatchNorm

from gencaps.data.batches import Batches
from gencaps.data.images import Splits
from gencaps.engine.devices import memory_bytes
from gencaps.engine.pretrained import misfit, sketch
from gencaps.engine.recipe import Recipe
from gencaps.engine.run import Run
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, PictureInfo, count_parameters

BYTES_A_PARAMETER = 16
"""float32 for the weight, its gradient and Adam's two averages."""
FREE = ("validate_every", "samples_every", "checkpoint_s")
"""Settings of training that may change while a run is stopped."""


def check(recipe: Recipe, splits: Splits, device: torch.device, world: int) -> CapsuleModel:
    """Refuses data and settings that do not go together; gives the model as a sketch without numbers."""
    name, (height, width) = splits.train.name, splits.train.x.shape[-2:]
    if height != width:
        side = min(height, width)
        raise GencapsError(f"'{name}' has pictures of {height} x {width}, not squares: give --train.size {side}")
    if len(splits.test) == 0:
        raise GencapsError(f"'{name}' leaves no pictures to test on: add some, at least 2 of each class")
    model = sketch(recipe.paper, recipe.model, PictureInfo.of(splits.train))
    needed, there = BYTES_A_PARAMETER * count_parameters(model.parameters()), memory_bytes(device)
    if needed > there:
        raise GencapsError(
            f"training this {recipe.paper} model takes {needed / 2**30:,.0f} GiB of memory and there are "
            f"{there / 2**30:,.0f}: make its layers smaller, or choose a smaller --train.size"
        )
    batch = recipe.train.batch_for(len(splits.train), world)
    batches = Batches(splits.train, batch, seed=0, device=torch.device("cpu"), world=world)
    if batches.batch == world and any(isinstance(layer, _BatchNorm) for layer in model.modules()):
        raise GencapsError(
            f"train.batch is {recipe.train.batch}, which gives a process 1 picture, and batch normalisation needs 2 "
            "or more: raise train.batch"
        )
    return model


def check_unchanged(run: Run) -> None:
    """Refuses a run whose settings were changed after it was started: its checkpoint would not fit them."""
    recorded = run.facts().get("recipe")
    if not isinstance(recorded, dict):
        return
    now: dict[str, Any] = yaml.safe_load(run.recipe.to_yaml())
    for section in ("model", "train"):
        for name, value in (recorded.get(section) or {}).items():
            if name not in FREE and now[section].get(name, value) != value:
                raise GencapsError(
                    f"{run.path / 'config.yaml'}: {section}.{name} was {value} when the run was started and is "
                    f"{now[section][name]}: put it back, or start a new run with --config"
                )


def check_state(state: dict[str, Any], model: CapsuleModel, path: Path) -> None:
    """Refuses a checkpoint that is not of this model."""
    wrong = misfit(model, state["model"])
    if wrong is not None:
        raise GencapsError(
            f"the checkpoint in {path} is not of the model in its config.yaml (at '{wrong}'): "
            "put the file back that was changed, or start a new run"
        )
