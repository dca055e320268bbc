"""A few dozen pictures are enough to learn from: small sets get several steps an epoch and a short average."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gencaps.engine.evaluate import evaluate
from gencaps.engine.recipe import TrainConfig, make_recipe
from gencaps.engine.train import start


@pytest.mark.parametrize(
    ("asked", "pictures", "processes", "batch"),
    [
        (64, 1294, 1, 64),  # 1294 / 8 = 161 is more than asked
        (64, 65, 1, 8),  # 65 / 8 = 8: eight steps an epoch instead of one
        (64, 200, 1, 25),
        (64, 200, 2, 24),  # a multiple of the processes
        (64, 20, 1, 8),  # never below 8
        (4, 20, 1, 4),  # unless asked for
        (256, 60000, 4, 256),
    ],
)
def test_small_sets_get_smaller_batches(asked: int, pictures: int, processes: int, batch: int) -> None:
    assert TrainConfig(batch=asked).batch_for(pictures, processes) == batch


def test_average_reaches_back_over_a_tenth_of_the_run_at_most() -> None:
    config = TrainConfig(ema=0.99)
    assert config.ema_for(100_000) == 0.99
    assert config.ema_for(200) == pytest.approx(0.95)  # 1 / (1 - 0.95) = 20 steps of 200
    assert config.ema_for(5) == 0.0
    assert TrainConfig(ema=0.0).ema_for(100_000) == 0.0


def test_sixty_coloured_pictures_are_learnt_with_the_default_recipe(tmp_path: Path) -> None:
    """Three colours on noise, 20 pictures each, 16 px: with one step an epoch this ended at chance."""
    rng = np.random.default_rng(0)
    for k, name in enumerate(("blue", "green", "red")):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(20):
            pixels = rng.integers(0, 120, (16, 16, 3), dtype=np.uint8)
            pixels[4:12, 4:12, 2 - k] = 230
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{i}.png")
    settings = {"train": {"size": 16, "epochs": 40, "samples_every": 0}}
    recipe = make_recipe("variational", data=f"folder:{tmp_path / 'set'}", overrides=settings)
    trained = start(recipe, tmp_path / "run", device="cpu", quiet=True)
    assert trained is not None
    assert evaluate(trained.model, trained.splits.test).accuracy == 1.0
