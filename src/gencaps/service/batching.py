"""Runs calls of one model that arrive together as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from gencaps.service.limits import Limits
from gencaps.service.merging import Rewind, likeness, merge, rows, split


class Dropped(Exception):
    """Ends the work for a client that has left, or for a service that closes."""


class Ticket:
    """One request; ``dropped`` once nobody waits for its answer."""

    dropped = False


class Call(NamedTuple):
    """One call of a model that waits for its turn."""

    ticket: Ticket
    work: str
    arguments: tuple[Any, ...]
    like: Hashable
    rows: int
    answer: Future[Any]


Told = Callable[[str, int], None]
"""Is told what ran and how many calls ran as one."""


class Batcher:
    """Lets one thread ask one model, as many calls at once as wait for the same work.

    A call never waits for others unless there are other requests inside, and then at most ``wait_s``.

    Args:
        model: whatever has the methods of the protocols in ``gencaps.model``.
    """

    def __init__(self, model: Any, limits: Limits | None = None, told: Told = lambda work, calls: None) -> None:
        self.model, self.limits, self._told = model, limits or Limits(), told
        self._changed = threading.Condition()
        self._waiting: list[Call] = []
        self._inside = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Counts a request that is about to call."""
        with self._changed:
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def ask(self, ticket: Ticket, work: str, *arguments: Any) -> Any:
        """Has the model do some work, alone or with others, and waits for the result."""
        call = Call(ticket, work, arguments, likeness(work, arguments), rows(work, arguments), Future())
        with self._changed:
            if self._closed or ticket.dropped:
                raise Dropped
            self._waiting.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="gencaps-model", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return call.answer.result()

    def close(self) -> None:
        """Ends the thread; calls that wait are dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    @torch.no_grad()
    def _serve(self) -> None:
        while (calls := self._next()) is not None:
            self._run(calls)

    def _next(self) -> list[Call] | None:
        """Takes the oldest call and those like it, once enough of them wait or have been waited for."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._changed.wait_for(self._ready, self.limits.wait_s)
            if self._closed:
                for call in self._waiting:
                    call.answer.set_exception(Dropped())
                self._waiting.clear()
                return None
            taken = self._alike()
            self._waiting = [call for call in self._waiting if not any(call is one for one in taken)]
            return taken

    def _ready(self) -> bool:
        if self._closed or self._inside <= len(self._waiting):
            return True  # every request inside waits already, so there is nobody to wait for
        like = self._waiting[0].like
        return sum(call.rows for call in self._waiting if call.like == like) >= self.limits.batch

    def _alike(self) -> list[Call]:
        """Lists the oldest call and what can run with it, up to a full batch; one that is larger runs alone."""
        taken: list[Call] = []
        pictures = 0
        for call in self._waiting:
            if call.like != self._waiting[0].like:
                continue
            if taken and pictures + call.rows > self.limits.batch:
                break
            taken.append(call)
            pictures += call.rows
        return taken

    def _run(self, calls: list[Call]) -> None:
        for call in calls:
            if call.ticket.dropped:
                call.answer.set_exception(Dropped())
        calls = [call for call in calls if not call.ticket.dropped]
        if len(calls) > 1 and self._together(calls):
            return
        for call in calls:
            self._alone(call)

    def _together(self, calls: list[Call]) -> bool:
        """Runs calls as one; gives up where one of them fails, so that it fails alone."""
        arguments = [call.arguments for call in calls]
        rewind = Rewind(arguments)
        try:
            result = getattr(self.model, calls[0].work)(*merge(calls[0].work, arguments))
            parts = split(result, [call.rows for call in calls])
        except Exception:
            rewind()
            return False
        self._told(calls[0].work, len(calls))
        for call, part in zip(calls, parts, strict=True):
            call.answer.set_result(part)
        return True

    def _alone(self, call: Call) -> None:
        try:
            result = getattr(self.model, call.work)(*call.arguments)
        except Exception as error:
            call.answer.set_exception(error)
            return
        self._told(call.work, 1)
        call.answer.set_result(result)
