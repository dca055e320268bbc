"""Tiny runs for the engine's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from gencaps.engine.recipe import Recipe, make_recipe
from gencaps.engine.train import Trained, start

TINY: dict[str, dict[str, Any]] = {
    "model": {"dim": 4, "widths": [8], "strides": [2], "decoder": [16], "norm": "group"},
    "train": {"epochs": 2, "batch": 64, "samples_every": 0, "degrees": 5.0, "shift": 0.5, "ema": 0.9},
}


def tiny(seed: int = 0, **train: Any) -> Recipe:
    """A recipe that trains on the digits in a second."""
    return make_recipe("variational", seed=seed, overrides={**TINY, "train": {**TINY["train"], **train}})


def train(folder: Path, recipe: Recipe) -> Trained:
    """Trains a recipe on the CPU without a word."""
    trained = start(recipe, folder, device="cpu", quiet=True)
    assert trained is not None
    return trained


def weights(folder: Path) -> dict[str, Tensor]:
    """Reads a run's weights."""
    return load_file(folder / "model.safetensors")


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Tells whether two sets of weights are equal bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
