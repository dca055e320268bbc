"""Does the requests for one model in one thread, and runs what several of them ask of it as one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import torch
from greenlet import getcurrent, greenlet

from gencaps.service.limits import Limits
from gencaps.service.merging import Rewind, likeness, merge, rows, split


class Dropped(Exception):
    """Ends the work for a client that has left, or for a service that closes."""


class Ticket:
    """One request; ``dropped`` once nobody waits for its answer."""

    dropped = False


class Task(NamedTuple):
    """The work for one request."""

    ticket: Ticket
    job: Callable[[], Any]
    answer: Future[Any]


class Call(NamedTuple):
    """One call of a model that waits for its turn."""

    ticket: Ticket
    work: str
    arguments: tuple[Any, ...]
    like: Hashable
    rows: int
    fibre: greenlet


Told = Callable[[str, int], None]
"""Is told what ran and how many calls ran as one."""


class Batcher:
    """Does tasks as fibres of one thread: each runs until it asks the model, and goes on when it has the answer.

    The model is asked once every fibre waits for it: then the oldest call and those like it run as one. So a request
    costs no change of threads, which under load costs more than a small model. A lone request never waits: only after
    several were done together are as many waited for again, at most ``wait_s``.

    Args:
        model: whatever has the methods of the protocols in ``gencaps.abilities``.
        elsewhere: does what would hold the others up.
    """

    def __init__(
        self,
        model: Any,
        limits: Limits | None = None,
        told: Told = lambda work, calls: None,
        elsewhere: Executor | None = None,
    ) -> None:
        self.model, self.limits = model, limits or Limits()
        self._told, self._elsewhere = told, elsewhere
        self._changed = threading.Condition()
        self._new: deque[Task] = deque()
        self._back: deque[greenlet] = deque()
        self._closed = False
        self._thread: threading.Thread | None = None
        # what follows belongs to the thread alone
        self._hub: greenlet = getcurrent()
        self._calls: list[Call] = []
        self._away: set[greenlet] = set()
        self._done = 0

    # --- from any thread

    def submit(self, ticket: Ticket, job: Callable[[], Any]) -> Future[Any]:
        """Has a job done, which may ask the model and wait for work done elsewhere."""
        task = Task(ticket, job, Future())
        with self._changed:
            if self._closed:
                raise Dropped
            self._new.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="gencaps-model", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return task.answer

    def close(self) -> None:
        """Ends the thread; whatever waits is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    # --- from a job

    def ask(self, ticket: Ticket, work: str, *arguments: Any) -> Any:
        """Has the model do some work, alone or with others, and waits for the result."""
        if ticket.dropped:
            raise Dropped
        like, count = likeness(work, arguments), rows(work, arguments)
        self._calls.append(Call(ticket, work, arguments, like, count, getcurrent()))
        return self._hub.switch()

    def apart(self, job: Callable[[], Any]) -> Any:
        """Has slow work done in another thread, while this one goes on with other fibres."""
        if self._elsewhere is None:
            return job()
        fibre, work = getcurrent(), self._elsewhere.submit(job)
        self._away.add(fibre)
        work.add_done_callback(lambda done: self._return(fibre))
        self._hub.switch()
        return work.result()

    def _return(self, fibre: greenlet) -> None:
        with self._changed:
            self._back.append(fibre)
            self._changed.notify_all()

    # --- the thread

    @torch.no_grad()
    def _serve(self) -> None:
        self._hub = getcurrent()
        while self._take_up():
            if self._calls:
                taken = self._alike()
                self._calls = [call for call in self._calls if not any(call is one for one in taken)]
                self._run(taken)
        for fibre in [call.fibre for call in self._calls] + list(self._away):
            fibre.throw(Dropped())

    def _take_up(self) -> bool:
        """Begins what has arrived and goes on with what has come back, each up to its next call; False at the end."""
        with self._changed:
            if not self._calls:
                several, self._done = self._done, 0
                self._changed.wait_for(self._busy)
                if several > 1:
                    self._changed.wait_for(lambda: self._closed or len(self._new) >= several, self.limits.wait_s)
            new, back = list(self._new), list(self._back)
            self._new.clear()
            self._back.clear()
            closed = self._closed
        for task in new:
            if closed:
                task.answer.set_exception(Dropped())
            else:
                greenlet(self._do).switch(task)
        for fibre in back:
            self._away.discard(fibre)
            if not closed:
                fibre.switch()
        return not closed

    def _busy(self) -> bool:
        return bool(self._closed or self._new or self._back)

    def _do(self, task: Task) -> None:
        """Is one fibre: does a task from its beginning to its end."""
        try:
            if task.ticket.dropped:
                raise Dropped
            result = task.job()
        except BaseException as error:
            task.answer.set_exception(error)
        else:
            task.answer.set_result(result)
        self._done += 1

    def _alike(self) -> list[Call]:
        """Lists the oldest call and what can run with it, up to a full batch; one that is larger runs alone."""
        taken: list[Call] = []
        pictures = 0
        for call in self._calls:
            if call.like != self._calls[0].like:
                continue
            if taken and pictures + call.rows > self.limits.batch:
                break
            taken.append(call)
            pictures += call.rows
        return taken

    def _run(self, calls: list[Call]) -> None:
        for call in calls:
            if call.ticket.dropped:
                call.fibre.throw(Dropped())
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
            call.fibre.switch(part)
        return True

    def _alone(self, call: Call) -> None:
        try:
            result = getattr(self.model, call.work)(*call.arguments)
        except Exception as error:
            call.fibre.throw(error)
            return
        self._told(call.work, 1)
        call.fibre.switch(result)
