"""A progress bar on standard error that costs nothing where none is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(label: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Shows a bar with the time left while the block runs; yields ``advance(by)``."""
    if not shown:
        yield lambda by: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    # elsewhere than on a terminal a bar would leave an empty line
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda by: progress.advance(task, by)


class DownloadBar:
    """Gives pooch a bar of rich: it sets ``total`` and calls ``update``, ``reset`` and ``close``."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        console = Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task(label, total=None)
        self._progress.start()
        self.total = 0

    def update(self, size: int) -> None:
        self._progress.update(self._task, advance=size, total=self.total or None)

    def reset(self) -> None:
        self._progress.reset(self._task, total=self.total or None)

    def close(self) -> None:
        self._progress.stop()
