"""The runs behind claims: trained once, gone on with, and never taken for another."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from gencaps.engine import fit as fit_module
from gencaps.engine.config import plain
from gencaps.engine.interrupt import Interrupted
from gencaps.engine.recipe import Recipe, make_recipe
from gencaps.engine.run import Run
from gencaps.engine.train import Trained
from gencaps.reproduce.claims import TrainingRun, book
from gencaps.reproduce.judge import judge_recipe
from gencaps.reproduce.training import ensure_trained, load_trained, overrides, recipe_of, training_seconds
from tests.helpers import refused


def training_run(**fields: Any) -> TrainingRun:
    return TrainingRun(**{"name": "r", "system": "resnet", "preset": "mnist", "data": "mnist", "seeds": 1, **fields})


def trained(recipe: Recipe, path: Path) -> Trained:
    return ensure_trained(recipe, path, device="cpu", quiet=True)


@pytest.fixture
def finished(resnet: Trained, tmp_path: Path) -> Path:
    """Gives a copy of a finished run."""
    return shutil.copytree(resnet.run.path, tmp_path / "finished", ignore=shutil.ignore_patterns("tensorboard"))


def test_settings_stand_over_the_preset() -> None:
    plain = make_recipe("resnet", preset="mnist", data="mnist", seed=3)
    assert recipe_of(training_run(), 3) == plain
    changed = recipe_of(training_run(settings={"train.epochs": 7, "model.width": 8}), 3)
    assert (changed.train.epochs, changed.model.width) == (7, 8)
    assert changed.train.batch == plain.train.batch
    assert (changed.paper, changed.data, changed.seed) == ("resnet", "mnist", 3)


def test_settings_are_sorted_into_sections() -> None:
    assert overrides({"model.x": 1, "train.y": 2, "model.z": 3}) == {"model": {"x": 1, "z": 3}, "train": {"y": 2}}
    assert overrides({}) == {"model": {}, "train": {}}
    for name in ("epochs", "trian.epochs", "train."):
        refused(lambda name=name: overrides({name: 1}), f"'{name}'")


@pytest.mark.parametrize("data", ["mnist", "fashion_mnist", "cifar10", "mnist_to_affnist", "digits"])
def test_the_small_version_of_a_run_is_one_epoch_on_the_digits(data: str) -> None:
    recipe = recipe_of(training_run(data=data, settings={"train.size": 40, "train.degrees": 5.0}), 0, smoke=True)
    assert (recipe.data, recipe.train.epochs, recipe.train.size) == ("digits", 1, None)
    assert recipe.train.degrees == 5.0  # the run's own settings are tried too
    assert recipe.train.valid == 0.0


@pytest.mark.parametrize("data", ["celeba", "faces"])
def test_the_small_version_of_a_run_on_attributes_is_on_few_small_faces(data: str) -> None:
    recipe = recipe_of(training_run(data=data, settings={"train.size": 256}), 0, smoke=True)
    assert (recipe.data, recipe.train.epochs, recipe.train.size) == ("faces:60", 1, 32)


def test_every_run_of_the_book_has_a_recipe_and_a_small_one() -> None:
    ready = [run for run in book().runs.values() if run.missing is None]
    assert len(ready) >= 10
    for run in ready:
        assert recipe_of(run, 1).data == run.data
        assert recipe_of(run, 1, smoke=True).seed == 1
        stages = plain(recipe_of(run, 0, smoke=True).model)
        assert all(value in (None, 1) for name, value in stages.items() if name.endswith("_epochs"))


def test_what_is_not_built_is_refused() -> None:
    refused(lambda: recipe_of(training_run(system="no_such"), 0), "'r'", "no_such")
    refused(lambda: recipe_of(training_run(preset="no_such"), 0, smoke=True), "'r'", "no preset 'no_such'")


def test_a_run_has_its_figures_and_its_seconds(resnet: Trained) -> None:
    assert (resnet.run.path / "evaluation.json").exists()
    rows = [row["seconds"] for row in resnet.run.rows() if row["split"] == "train"]
    assert len(rows) == 1
    assert training_seconds(resnet.run) == sum(rows) > 0


def test_a_finished_run_is_found_and_not_trained_again(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "take_step", None)  # any step would fail
    before = {path.name: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    found = trained(judge_recipe("digits", smoke=True), finished)
    assert {path.name: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()} == before
    assert found.run.path == finished
    assert not found.model.training


def test_a_finished_run_without_its_checkpoints_is_not_trained_again(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_module, "take_step", None)  # any step would fail
    assert [path.unlink() for path in finished.glob("*.pt")]
    weights = (finished / "model.safetensors").read_bytes()
    trained(judge_recipe("digits", smoke=True), finished)
    assert (finished / "model.safetensors").read_bytes() == weights


def test_a_run_found_is_the_one_that_was_trained(resnet: Trained, finished: Path) -> None:
    found = load_trained(Run.open(finished), "cpu")
    for name, weights in resnet.model.state_dict().items():
        assert torch.equal(found.model.state_dict()[name], weights.cpu())
    assert torch.equal(found.splits.test.x, resnet.splits.test.x)


def test_a_run_that_was_stopped_before_its_figures_is_finished(finished: Path) -> None:
    (finished / "evaluation.json").unlink()
    rows = (finished / "metrics.jsonl").read_text()
    trained(judge_recipe("digits", smoke=True), finished)
    assert (finished / "evaluation.json").exists()
    assert (finished / "metrics.jsonl").read_text() == rows


def test_a_run_that_was_stopped_is_gone_on_with(tmp_path: Path, resnet: Trained) -> None:
    """It comes to the same weights as the one that was left alone."""
    recipe, path, real, taken = judge_recipe("digits", smoke=True), tmp_path / "run", fit_module.take_step, 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "take_step", counted)
        with pytest.raises(Interrupted):
            trained(recipe, path)
        assert not (path / "evaluation.json").exists()
        stopped = taken
        again = trained(recipe, path)
    steps = resnet.run.rows()[-1]["step"]
    assert stopped < steps
    assert taken == steps  # none was taken twice
    for name, weights in resnet.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], weights)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"overrides": {"train": {"learning_rate": 0.5}}}, ["train.learning_rate", "0.5"]),
        ({"overrides": {"model": {"width": 8}}}, ["model.width", "8"]),
        ({"seed": 1}, ["seed"]),
        ({"data": "faces:60"}, ["data"]),
    ],
)
def test_a_run_with_other_settings_is_refused(finished: Path, change: dict[str, Any], words: list[str]) -> None:
    wanted = judge_recipe("digits", smoke=True)
    sections: dict[str, dict[str, Any]] = {"train": {"epochs": 1, "valid": 0.0, "samples_every": 0}, "model": {}}
    for section, values in change.pop("overrides", {}).items():
        sections[section] |= values
    other = make_recipe("resnet", **{"preset": "small", "data": "digits", "seed": 0, "overrides": sections, **change})
    assert other != wanted
    refused(lambda: trained(other, finished), str(finished), *words)


def test_data_that_changed_since_is_refused(finished: Path) -> None:
    run = Run.open(finished)
    split = run.facts()["split"]
    split["train"]["pictures"] += 1
    run.record(split=split)
    refused(lambda: load_trained(run, "cpu"), str(finished), "'digits'")
