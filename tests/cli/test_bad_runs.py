"""Runs and models that were damaged, changed or never were any: told in one line, and left as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from gencaps.cli import main
from tests.cli.helpers import contents, refused

# --- runs that cannot be resumed


def edit_state(run: Path, **change: object) -> None:
    torch.save(torch.load(run / "state.pt", weights_only=True) | change, run / "state.pt")


def edit_config(old: str, new: str) -> Callable[[Path], object]:
    def edit(run: Path) -> None:
        text = (run / "config.yaml").read_text()
        assert old in text
        (run / "config.yaml").write_text(text.replace(old, new))

    return edit


def no_record(edit: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda run: ((run / "facts.json").unlink(), edit(run))


def cut(name: str) -> Callable[[Path], object]:
    return lambda run: (run / name).write_bytes((run / name).read_bytes()[:100])


NOT_RESUMED: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "a newer version": (
        lambda run: edit_state(run, format=99, gencaps="9.9.9"),
        ("state.pt", "gencaps 9.9.9 (format 99)", "upgrade gencaps"),
    ),
    "another format": (lambda run: edit_state(run, format="x"), ("state.pt", "not a checkpoint", "put back")),
    "a foreign checkpoint": (
        lambda run: torch.save({"format": 1}, run / "state.pt"),
        ("stopped", "not of a training run", "start a new one"),
    ),
    "a truncated checkpoint": (cut("state.pt"), ("state.pt is damaged", "start a new run")),
    "another model": (
        no_record(edit_config("dim: 8", "dim: 4")),
        ("checkpoint in", "config.yaml", "put the file back"),
    ),
    "a changed setting": (
        edit_config("optimizer: adam", "optimizer: sgd"),
        ("config.yaml", "train.optimizer was adam", "is sgd", "put it back"),
    ),
    "a changed length": (edit_config("epochs: 1", "epochs: 9"), ("train.epochs was 1", "is 9", "--config")),
    "other data": (edit_config("seed: 0", "seed: 1"), ("'digits' is not what", "put it back")),
    "a damaged record": (lambda run: (run / "facts.json").write_text("{"), ("facts.json is damaged", "delete it")),
    "an empty config": (lambda run: (run / "config.yaml").write_text(""), ("config.yaml holds no settings",)),
    "a config without a paper": (
        lambda run: (run / "config.yaml").write_text("data: digits\n"),
        ("config.yaml names no paper",),
    ),
    "no config": (lambda run: (run / "config.yaml").unlink(), ("is not a run folder", "no config.yaml")),
}


@pytest.mark.parametrize("case", NOT_RESUMED)
def test_a_run_that_cannot_go_on_is_told_and_left_alone(
    case: str, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, says = NOT_RESUMED[case]
    edit(stopped)
    before = contents(stopped)
    line = refused(capsys, "train", "--resume", stopped)
    for said in says:
        assert said in line
    assert contents(stopped) == before


def test_metrics_that_are_not_ours_do_not_stop_a_run(stopped: Path) -> None:
    (stopped / "metrics.jsonl").write_bytes(b'[1]\n\xff\xfe\n{"split": "train"}\n')
    assert main(["train", "--resume", str(stopped), "--quiet", "--no-report"]) == 0


def test_a_damaged_checkpoint_is_said_once_and_the_one_before_is_taken(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(stopped / "state.pt", stopped / "state.previous.pt")
    cut("state.pt")(stopped)
    assert main(["train", "--resume", str(stopped), "--no-report"]) == 0
    assert capsys.readouterr().err.count("state.pt is damaged") == 1


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_finished_run_is_not_resumed(trained: Path, checkpoints: bool, capsys: pytest.CaptureFixture[str]) -> None:
    if not checkpoints:
        assert [path.unlink() for path in trained.glob("*.pt")]
    before = contents(trained)
    line = refused(capsys, "train", "--resume", trained)
    assert f"{trained} is finished" in line
    assert f"--config {trained / 'config.yaml'} --train.epochs N" in line
    assert contents(trained) == before


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["variational"], "variational"),
        (["--data", "digits"], "--data"),
        (["--seed", "3"], "--seed"),
        (["--out", "x"], "--out"),
        (["--preset", "small"], "--preset"),
        (["--config", "x.yaml"], "--config"),
        (["--train.epochs", "3"], "--train.epochs"),
    ],
)
def test_resume_takes_nothing_that_was_settled_before(
    words: list[str], extra: str, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(stopped)
    assert f"leave out {extra}\n" in refused(capsys, "train", *words, "--resume", stopped)
    assert contents(stopped) == before


# --- models that cannot be asked


def tamper(**change: dict[str, object]) -> Callable[[Path], object]:
    """Changes a model's config in both of the places where it stands."""

    def edit(run: Path) -> None:
        values = json.loads((run / "config.json").read_text())
        for section, fields in change.items():
            values[section] |= fields
        with safe_open(run / "model.safetensors", "pt") as file:
            facts = file.metadata()
        save_file(
            load_file(run / "model.safetensors"),
            run / "model.safetensors",
            facts | {"gencaps": json.dumps(values)},
        )
        (run / "config.json").write_text(json.dumps(values))

    return edit


def flip(run: Path) -> None:
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-10] ^= 255
    (run / "model.safetensors").write_bytes(content)


NOT_ASKED: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "truncated weights": (cut("model.safetensors"), ("model.safetensors is not a whole", "copy it again")),
    "changed weights": (flip, ("model.safetensors was changed", "copy it again")),
    "no weights": (lambda run: (run / "model.safetensors").unlink(), ("no model yet", "train --resume")),
    "no config": (lambda run: (run / "config.json").unlink(), ("config.json", "copy the folder again")),
    "a nested config": (
        lambda run: (run / "config.json").write_text("[" * 100_000),
        ("config.json is not the config", "copy the folder again"),
    ),
    "other shapes": (tamper(model={"dim": 4}), ("does not fit its config", "copy the folder again")),
    "huge pictures": (tamper(pictures={"size": 10**5}), ("does not fit its config", "copy the folder again")),
    "no pictures": (tamper(pictures={"size": -3}), ("model.safetensors", "copy the folder again")),
    "words for numbers": (tamper(pictures={"channels": "x"}), ("pictures.channels is 'x'", "config.json")),
}


@pytest.mark.parametrize("case", NOT_ASKED)
def test_a_model_that_was_damaged_or_changed_is_refused(
    case: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, says = NOT_ASKED[case]
    edit(trained)
    for words in (["info"], ["evaluate"], ["classify", "a.png"], ["generate"]):
        line = refused(capsys, words[0], trained, *words[1:])
        for said in says:
            assert said in line


@pytest.mark.parametrize("command", ["evaluate", "info", "generate", "resume"])
def test_a_folder_that_is_neither_run_nor_model_is_named(
    command: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "empty").mkdir()
    (place / "file").write_text("x")
    words = ["train", "--resume"] if command == "resume" else [command]
    for given in ("empty", "file", "nowhere"):
        line = refused(capsys, *words, given)
        assert given in line
        assert any(remedy in line for remedy in ("give a", "give the", "give what", "makes one"))
    assert contents(place) == {"file": b"x"}
