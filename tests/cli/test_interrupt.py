"""Ctrl-C at any moment: exit code 130, and where there is a run, how to go on with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gencaps.cli import finish, main
from gencaps.engine import train
from gencaps.engine.run import Run
from tests.cli.helpers import TINY, ask, contents, refused

# two steps an epoch
LONG = [*TINY, "--train.epochs", "300", "--train.valid", "0.9", "--train.validate_every", "1000"]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.timeout(120)
def test_ctrl_c_saves_says_how_to_resume_and_resume_finishes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "variational", "--out", "run", "--device", "cpu", "--no-report", *LONG]
    process = subprocess.Popen(
        [sys.executable, "-m", "gencaps", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = place / "run" / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "stopped and saved; go on with: gencaps train --resume run"
    assert "Traceback" not in err
    done = [row["epoch"] for row in Run.open(Path("run")).rows()]
    assert 2 <= done[-1] < 300
    assert json.loads(ask(capsys, "info", "run", "--json"))["paper"] == "variational"  # it can be asked as it stands

    said = ask(capsys, *last_words(err))
    assert "test accuracy" in said
    rows = [row["epoch"] for row in Run.open(Path("run")).rows() if row["split"] == "train"]
    assert rows == list(range(1, 301))
    assert "is finished" in refused(capsys, "train", "--resume", "run")


def last_words(text: str) -> list[str]:
    """Takes the command out of the last line, as a user would copy it."""
    return text.splitlines()[-1].partition("gencaps ")[2].split()


def break_off(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_before_there_is_a_run_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train, "load_splits", break_off)
    assert main(["train", "variational", "--out", "run", *TINY]) == 130
    assert capsys.readouterr().err == "gencaps: interrupted\n"
    assert not list(place.iterdir())


def test_ctrl_c_before_the_first_step_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(train, "fit", break_off)
        assert main(["train", "variational", "--out", "run", "--no-report", *TINY]) == 130
    said = capsys.readouterr().err
    assert said == "stopped; go on with: gencaps train --resume run\n"
    ask(capsys, *last_words(said), "--no-report")
    assert (Path("run") / "evaluation.json").exists()


def test_ctrl_c_in_the_last_evaluation_is_made_up_for_by_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(finish, "evaluate", break_off)
        assert main(["train", "variational", "--out", "run", "--quiet", *TINY]) == 130
    said = capsys.readouterr().err
    assert last_words(said) == ["train", "--resume", "run"]
    before = contents(Path("run"))
    assert "report.html" not in before
    assert "test accuracy" in ask(capsys, *last_words(said))
    after = contents(Path("run"))
    assert b"<html" in after["report.html"]
    assert after["model.safetensors"] == before["model.safetensors"]
    assert "is finished" in refused(capsys, "train", "--resume", "run")


def test_a_question_broken_off_ends_quietly(
    trained_digits: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gencaps.api.Capsules.generate", break_off)
    assert main(["generate", str(trained_digits)]) == 130
    assert capsys.readouterr().err == "gencaps: interrupted\n"


def test_a_package_broken_off_in_its_import_ends_quietly() -> None:
    """numpy, stopped halfway, ends in a RecursionError: what came of a Ctrl-C is told as one."""
    code = (
        "import os, signal, sys, gencaps.cli as cli\n"
        "def main():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        raise RecursionError\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "cli.main = main\n"
        "cli.run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "gencaps: interrupted\n")
