"""Every preset in the package parses, builds its model and takes a step."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gencaps.data.catalog import ENTRIES
from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe, presets
from gencaps.model import PictureInfo, Step
from gencaps.primitives.noise import Noise
from gencaps.reproduce.training import overrides
from gencaps.systems import SYSTEMS

EVERY = [(paper, preset) for paper in SYSTEMS for preset in presets(paper)]


@pytest.mark.parametrize(("paper", "preset"), EVERY)
def test_preset_parses_and_says_what_it_is_for(paper: str, preset: str) -> None:
    recipe = make_recipe(paper, preset=preset)
    assert recipe.paper == paper
    assert len(presets(paper)[preset]) > 10


@pytest.mark.parametrize(("paper", "preset"), EVERY)
def test_preset_builds_a_model_with_a_finite_loss(paper: str, preset: str) -> None:
    recipe = make_recipe(paper, preset=preset)
    entry = ENTRIES[recipe.data]
    size, names = recipe.train.size or entry.size, tuple(map(str, range(entry.classes)))
    model = build(paper, recipe.model, PictureInfo(entry.channels, size, names, entry.labels, recipe.data))
    x = torch.rand(4, entry.channels, size, size)
    y = torch.arange(4) if entry.labels == "classes" else torch.randint(0, 2, (4, entry.classes))
    for stage in model.stages():
        for player in model.players(stage.name):
            step = Step(Noise(0), player, stage.name)
            losses = model.losses(x, y, step)
            assert losses.total.isfinite()


def test_every_paper_has_a_small_preset_which_is_the_default() -> None:
    for paper in SYSTEMS:
        assert make_recipe(paper) == make_recipe(paper, preset="small")


def test_the_ablation_ends_at_the_preset_best() -> None:
    place = Path(__file__).parents[1] / "benchmarks" / "ablation.py"
    ablation = runpy.run_path(str(place))
    last = make_recipe(
        "variational", preset="paper", overrides=overrides(ablation["settings_of"](ablation["KEPT"] - 1))
    )
    best = make_recipe("variational", preset="best")
    assert last.model == best.model
    assert replace(last.train, samples_every=best.train.samples_every) == best.train
