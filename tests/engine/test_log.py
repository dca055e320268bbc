"""What a run says and writes down about itself."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import torch

from gencaps.engine.log import RunLog, counting, relative, remaining
from gencaps.engine.run import Run
from gencaps.errors import GencapsError
from tests.engine.helpers import tiny


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", tiny())


def test_rows_are_json_lines_in_order(run: Run) -> None:
    with RunLog(run, quiet=True) as log:
        log.row("train", {"epoch": 1, "step": 10, "loss": 0.5})
        # each line is on disk at once: a kill loses none
        assert run.rows() == [{"split": "train", "epoch": 1, "step": 10, "loss": 0.5}]
        log.row("valid", {"epoch": 1, "step": 10, "accuracy": 0.25})
    lines = run.metrics.read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"split": "train", "epoch": 1, "step": 10, "loss": 0.5},
        {"split": "valid", "epoch": 1, "step": 10, "accuracy": 0.25},
    ]


def test_rows_after_the_step_resumed_from_are_dropped(run: Run) -> None:
    with RunLog(run, quiet=True) as log:
        for step in (10, 20, 30):
            log.row("train", {"step": step, "loss": 1.0})
    with run.metrics.open("a") as file:
        file.write('{"split": "train", "st')  # torn by a kill
    with RunLog(run, 20, quiet=True) as log:
        assert [row["step"] for row in run.rows()] == [10, 20]
        log.row("train", {"step": 30, "loss": 2.0})
    assert [(row["step"], row["loss"]) for row in run.rows()] == [(10, 1.0), (20, 1.0), (30, 2.0)]


def test_a_run_that_starts_anew_has_no_rows(run: Run) -> None:
    with RunLog(run, quiet=True) as log:
        log.row("train", {"step": 10, "loss": 1.0})
    with RunLog(run, quiet=True):
        assert run.rows() == []


def test_tensorboard_gets_the_numbers_and_the_pictures(run: Run) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with RunLog(run, quiet=True) as log:
        log.row("train", {"stage": "all", "epoch": 1, "step": 10, "loss": 0.5})
        log.row("train", {"stage": "all", "epoch": 2, "step": 20, "loss": 0.25})
        log.picture("generated", torch.zeros(4, 6, 3, dtype=torch.uint8), 20)
    board = EventAccumulator(str(run.path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in board.Scalars("train/loss")] == [(10, 0.5), (20, 0.25)]
    assert board.Tags()["scalars"] == ["train/loss"]  # what counts is no curve
    assert [(e.step, e.width, e.height) for e in board.Images("generated")] == [(20, 6, 4)]


def test_without_a_terminal_lines_are_plain(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with RunLog(run) as log:
        log.begin("all", 100, 0)
        log.advance(50, "loss 0.5")
        log.say("all epoch 1/2  loss 0.500  [x]")
    said = capsys.readouterr()
    assert said.err == "all epoch 1/2  loss 0.500  [x]\n"
    assert said.out == ""


def test_quiet_says_nothing_but_writes(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with RunLog(run, quiet=True) as log:
        log.begin("all", 100, 0)
        log.advance(50, "loss 0.5")
        log.say("a line")
        log.row("train", {"step": 1, "loss": 1.0})
    said = capsys.readouterr()
    assert said.out + said.err == ""
    assert len(run.rows()) == 1


def test_a_terminal_gets_a_bar_with_lines_above_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with RunLog(run) as log:
        log.begin("all", 100, 20)
        log.advance(50, "loss 0.512  900 images/s")
        log.say("epoch 1 [bold]ends[/bold]")
    text = screen.getvalue()
    assert "50/100" in text
    assert "loss 0.512  900 images/s" in text
    assert "epoch 1 [bold]ends[/bold]" in text  # what a line says is never taken for markup
    assert "\x1b[?25h" in text  # the cursor is shown again


def test_a_row_that_cannot_be_written_says_how_to_go_on(run: Run) -> None:
    with RunLog(run, quiet=True) as log:
        run.metrics.unlink()
        run.metrics.mkdir()
        with pytest.raises(GencapsError) as caught:
            log.row("train", {"step": 1, "loss": 1.0})
    assert str(caught.value).startswith(f"cannot write {run.metrics}: ")
    assert str(caught.value).endswith(f"then gencaps train --resume {run.path}")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),  # never "0 min 60 s"
        (200.0, "3 min 20 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7199.0, "1 h 59 min"),
        (100_000.0, "27 h 46 min"),
    ],
)
def test_remaining_time_is_told_in_two_units(seconds: float, said: str) -> None:
    assert remaining(seconds) == said


def test_paths_are_told_as_the_user_would_type_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert relative(tmp_path / "here" / "runs" / "a") == "runs/a"
    assert relative(Path("runs/a")) == "runs/a"
    assert relative(tmp_path / "there") == str(tmp_path / "there")


def test_steps_are_counted_on_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream, shown, seen in ((Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with counting("refining", 3, shown) as each:
            for _ in range(3):
                each()
        assert ("refining" in stream.getvalue()) == seen
