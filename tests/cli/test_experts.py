"""What the command line offers of a product of experts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gencaps.cli import main
from tests.cli.helpers import ask, refused

SIZES = ["--model.filters", "[8, 16]", "--model.capsules", "[4]", "--model.dim", "4", "--model.line", "3"]
SMALL = ["--train.epochs", "1", "--model.back_epochs", "1", *SIZES]


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trains a tiny product of experts on the digits."""
    run = tmp_path_factory.mktemp("experts") / "run"
    words = ["train", "product_of_experts", "--out", str(run), "--quiet", "--device", "cpu", *SMALL]
    assert main(words) == 0
    return run


@pytest.fixture
def run(trained_once: Path, place: Path) -> Path:
    """Gives a copy of it."""
    return shutil.copytree(trained_once, place / "experts", ignore=shutil.ignore_patterns("tensorboard"))


def test_three_stages_are_trained_and_reported(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["stage"] for row in rows if row["split"] == "train"] == ["autoencoder", "experts", "back"]
    assert (run / "report.html").exists()


def test_capsules_are_drawn_from_and_walked_along(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ask(capsys, "generate", run, "--capsule", "3,1", "--n", "2", "--json", "--out", "a.png"))
    assert said["labels"] == ["capsule 3", "capsule 1"]
    assert said["pictures"] == 4
    every = json.loads(ask(capsys, "generate", run, "--domain", "full", "--n", "2", "--json"))
    assert every["pictures"] == 8
    walked = json.loads(ask(capsys, "explore", run, "--capsule", "0", "--steps", "3", "--json"))
    assert walked["labels"] == [f"axis {d}" for d in range(4)]
    assert walked["pictures"] == 12


def test_pictures_are_encoded_and_rebuilt(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "generate", run, "--capsule", "0", "--n", "1", "--out", "a.png")
    (code,) = json.loads(ask(capsys, "encode", run, "a.png", "--json"))
    assert len(code["pose"]) == len(code["presence"]) == 4
    assert all(0 <= p < 1 for p in code["presence"])
    assert "a.png  presence  0." in ask(capsys, "encode", run, "a.png")
    assert json.loads(ask(capsys, "reconstruct", run, "a.png", "--json"))["mse"] >= 0


def test_a_probe_is_fitted_on_a_few_labels(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ask(capsys, "probe", run, "--labels", "300", "--json"))
    assert said["labels"] == 300
    assert said["accuracy"] > 0.5  # guessing gives a tenth
    assert "linear probe: accuracy" in ask(capsys, "probe", run, "--labels", "300")


def test_what_cannot_be_drawn_is_refused(run: Path, capsys: pytest.CaptureFixture[str], trained: Path) -> None:
    assert "capsules 0 to 3" in refused(capsys, "generate", run, "--capsule", "4")
    assert "capsules 0 to 3" in refused(capsys, "explore", run, "--capsule", "9")
    assert "restricted" in refused(capsys, "generate", run, "--domain", "restriced")
    assert "choose one" in refused(capsys, "generate", run, "--capsule", "1", "--classes", "3")
    assert "not a whole number" in refused(capsys, "generate", run, "--capsule", "one")
    assert "--capsule and --domain are for" in refused(capsys, "generate", trained, "--capsule", "1")
    assert "cannot explore" in refused(capsys, "explore", trained, "--capsule", "1")
    assert "at least 10, one for each class" in refused(capsys, "probe", run, "--labels", "0")
    assert "at least 10" in refused(capsys, "probe", run, "--labels", "3")
