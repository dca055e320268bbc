"""Every system is found by its name, builds, trains and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import gencaps
from gencaps import data
from gencaps.abilities import abilities
from gencaps.api import Capsules
from gencaps.baselines import RIVALS
from gencaps.engine.evaluate import pixels
from gencaps.engine.pretrained import sketch
from gencaps.engine.recipe import make_recipe, presets
from gencaps.model import CapsuleModel, PictureInfo
from gencaps.papers import PAPERS
from gencaps.primitives.noise import Noise
from gencaps.systems import SYSTEMS, check_system, config_type, model_type
from tests.helpers import refused

EXPECTED = {
    "capsnet": ("classify", "encode", "reconstruct"),
    "gan": ("sample", "walk", "score"),
    "vae": ("encode", "reconstruct", "sample", "interpolate"),
    "resnet": ("classify",),
}


def test_papers_and_rivals_share_no_name_and_together_are_the_systems() -> None:
    assert not set(PAPERS) & set(RIVALS)
    assert set(SYSTEMS) == set(PAPERS) | set(RIVALS)
    assert set(EXPECTED) == set(RIVALS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_is_found_under_its_own_name(name: str) -> None:
    model, config = model_type(name), config_type(name)
    assert issubclass(model, CapsuleModel)
    assert model.paper == name
    assert model.title
    assert is_dataclass(config)
    room = "papers" if name in PAPERS else "baselines"
    assert model.__module__ == f"gencaps.{room}.{name}.model"
    assert config.__module__ == f"gencaps.{room}.{name}.config"
    assert "small" in presets(name)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32)])
def test_every_system_builds_without_numbers(name: str, channels: int, size: int) -> None:
    model = sketch(name, config_type(name)(), PictureInfo(channels, size, tuple("0123456789")))
    assert {p.device.type for p in model.parameters()} == {"meta"}
    # what may be compiled is there
    assert all(callable(getattr(model, method)) for method in model.compiled)
    # the players of all stages together move every weight
    shared = {id(p) for s in model.stages() for player in model.players(s.name).values() for p in player.parameters}
    assert shared == {id(p) for p in model.parameters()}


@pytest.mark.parametrize(
    ("name", "near"), [("capsent", "capsnet"), ("resnet18", "resnet"), ("variatonal", "variational")]
)
def test_an_unknown_system_is_refused_with_the_nearest(name: str, near: str) -> None:
    calls: list[Callable[[str], object]] = [check_system, model_type, config_type, make_recipe]
    for call in calls:
        refused(lambda call=call: call(name), f"'{name}'", f"did you mean '{near}'?")


def test_a_name_near_to_none_is_refused_with_all() -> None:
    refused(lambda: check_system("zzzz"), *SYSTEMS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Trains a rival for two epochs on the digits, once."""
    from gencaps.cli import main

    folder, made = tmp_path_factory.mktemp("rivals"), {}

    def run(name: str) -> Path:
        if name not in made:
            words = ["train", name, "--out", str(folder / name), "--quiet", "--no-report", "--device", "cpu"]
            assert main([*words, "--train.epochs", "2"]) == 0
            made[name] = folder / name
        return made[name]

    return run


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_trains_through_the_command_line(name: str, runs: Callable[[str], Path]) -> None:
    run = runs(name)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    trained = [row for row in rows if row["split"] == "train"]
    assert [row["epoch"] for row in trained] == [1, 2]
    assert all(isinstance(value, int | float | str) for row in rows for value in row.values())
    if name != "gan":  # of two that play against each other, one may lose what the other wins
        assert trained[1]["loss"] < trained[0]["loss"]
    assert any(row["split"] == "valid" for row in rows)


def answer(ability: str, model: Capsules, x: torch.Tensor) -> Any:
    """Asks a model for what it says it can do; the API has no words yet for sample and score."""
    inner: Any = model.model
    with torch.no_grad():
        return {
            "classify": lambda: model.classify(x).presence,
            "encode": lambda: model.encode(x)[0],
            "reconstruct": lambda: model.reconstruct(x).pictures,
            "sample": lambda: inner.sample(len(x), Noise(0)),
            "walk": lambda: model.walk(2, steps=3).pictures,
            "score": lambda: inner.score(x),
            "interpolate": lambda: model.interpolate(x, x.flip(0), steps=3).pictures,
        }[ability]()


@pytest.mark.parametrize("name", RIVALS)
def test_a_trained_rival_loads_and_does_what_it_says(name: str, runs: Callable[[str], Path]) -> None:
    model = gencaps.load(runs(name), "cpu")
    assert model.can == abilities(model.model) == EXPECTED[name]
    size = model.info.size
    x = pixels(data.load("digits", size=size).test.x[:4])
    shapes = {"classify": (4, 10), "score": (4,), "interpolate": (12, 1, size, size), "walk": (6, 1, size, size)}
    for ability in model.can:
        answered = answer(ability, model, x)
        assert answered.isfinite().all()
        if ability != "encode":
            assert answered.shape == shapes.get(ability, (4, 1, size, size))
            assert answered.min() >= 0
            assert answered.max() <= 1
        else:
            assert len(answered) == 4


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_refuses_by_name_what_it_cannot_do(name: str, runs: Callable[[str], Path]) -> None:
    model = gencaps.load(runs(name), "cpu")
    x = torch.rand(2, 1, model.info.size, model.info.size)
    asked: dict[str, Callable[[], object]] = {
        "classify": lambda: model.classify(x),
        "encode": lambda: model.encode(x),
        "reconstruct": lambda: model.reconstruct(x),
        "resample": lambda: model.resample(x),
        "interpolate": lambda: model.interpolate(x, x),
    }
    for ability, ask in asked.items():
        if ability not in model.can:
            refused(ask, f"this {name} model cannot {ability}", ", ".join(model.can))


@pytest.mark.parametrize(("name", "least"), [("capsnet", 0.5), ("resnet", 0.5)])
def test_a_classifier_has_learned_something_in_two_epochs(name: str, least: float, runs: Callable[[str], Path]) -> None:
    test = data.load("digits").test
    model: Any = gencaps.load(runs(name), "cpu").model
    with torch.no_grad():
        right = (model.classify(pixels(test.x)).label == test.y).float().mean()
    assert right > least  # guessing gives a tenth
