"""Ctrl-C and a cluster's polite kill, heard between two steps and never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Remembers whether somebody asked training to stop."""

    asked = False


@contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """Notes the first SIGINT or SIGTERM; a second SIGINT breaks off at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may listen to signals
        return

    def note(number: int, frame: FrameType | None) -> None:
        if stop.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.asked = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Interrupted(Exception):
    """Training was asked to stop, and everything is saved."""
