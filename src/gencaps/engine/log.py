"""Says how training goes: a bar on a terminal, plain lines elsewhere, metrics.jsonl and TensorBoard on disk."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import Tensor

from gencaps.engine.run import Run, resume_command
from gencaps.errors import GencapsError
from gencaps.files import remedy, write_atomically

SAY_EVERY_S = 5.0
"""Seconds between lines about epochs in which nothing else happened."""


class RunLog(AbstractContextManager["RunLog"]):
    """Writes a run's metrics; rows after the step that a run resumes from are dropped first.

    Args:
        run: the run folder.
        step: the step that training starts from.
        quiet: writes to disk but not to the screen.
    """

    def __init__(self, run: Run, step: int = 0, *, quiet: bool = False) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self.run, self.quiet = run, quiet
        rows = [row for row in run.rows() if row["step"] <= step]
        write_atomically(run.metrics, "".join(json.dumps(row) + "\n" for row in rows))
        self.board = SummaryWriter(str(run.path / "tensorboard"), purge_step=step or None)
        self.bar = None if quiet or not sys.stderr.isatty() else bar()
        self.task: Any = None
        self.said_s = 0.0

    def __enter__(self) -> RunLog:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
        self.board.close()

    def begin(self, stage: str, steps: int, done: int) -> None:
        """Opens the bar of a stage."""
        if self.bar is not None:
            self.task = self.bar.add_task("training" if stage == "all" else stage, total=steps, completed=done, note="")

    def advance(self, done: int, note: str) -> None:
        """Moves the bar."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, note=note)

    def row(self, split: str, values: dict[str, Any]) -> None:
        """Writes one line of metrics.jsonl and its TensorBoard points."""
        line = json.dumps({"split": split, **values}) + "\n"
        try:
            with self.run.metrics.open("a") as file:
                file.write(line)
        except OSError as error:
            raise GencapsError(
                f"cannot write {self.run.metrics}: {error.strerror}; {remedy(error)}, "
                f"then {resume_command(self.run.path)}"
            ) from None
        for name, value in values.items():
            if isinstance(value, float):
                self.board.add_scalar(f"{split}/{name}", value, values["step"])

    def picture(self, name: str, image: Tensor, step: int) -> None:
        """Sends a picture (height, width, channels) to TensorBoard."""
        self.board.add_image(name, image, step, dataformats="HWC")

    def say(self, line: str, *, minor: bool = False) -> None:
        """Prints a line above the bar, or as it is; a minor one only where nothing was said for a while."""
        if self.quiet or (minor and (self.bar is not None or time.monotonic() - self.said_s < SAY_EVERY_S)):
            return  # where there is a bar, it says so already
        self.said_s = time.monotonic()
        if self.bar is not None:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)


def bar() -> Any:
    """Makes a bar of steps on the terminal, gone when it ends."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def counting(what: str, steps: int, shown: bool = True) -> Iterator[Callable[[], None]]:
    """Shows a bar on a terminal while steps are counted by what it gives; elsewhere nothing."""
    if not shown or not sys.stderr.isatty():
        yield lambda: None
        return
    with bar() as drawn:
        task = drawn.add_task(what, total=steps, note="")
        yield lambda: drawn.advance(task)


def remaining(seconds: float) -> str:
    """Writes a time left for people: ``3 min 20 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def relative(path: Path) -> str:
    """Writes a path as the user would type it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
