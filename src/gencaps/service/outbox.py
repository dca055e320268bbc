"""Carries results from threads into an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any


class Outbox:
    """Hands over all results that are ready at once: waking a loop costs more than many of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ready: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._called = False

    def expect(self, work: Future[Any]) -> asyncio.Future[Any]:
        """Gives what the loop can wait for instead of a thread's work."""
        answer = self.loop.create_future()
        work.add_done_callback(lambda done: self._put(answer, done))
        return answer

    def _put(self, answer: asyncio.Future[Any], work: Future[Any]) -> None:
        self._ready.append((answer, work))
        if not self._called:
            self._called = True
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        # first, so that whoever comes from now on calls again
        self._called = False
        while self._ready:
            answer, work = self._ready.popleft()
            if answer.done():
                continue
            error = work.exception()
            if error is None:
                answer.set_result(work.result())
            else:
                answer.set_exception(error)
