"""The front desk: gives each request a place and a model, and forgets those whose client has left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from gencaps.api import Capsules
from gencaps.errors import GencapsError, nearest
from gencaps.service.acts import Act, forms, offers
from gencaps.service.answers import Examples, Models, about, render
from gencaps.service.batching import Batcher, Dropped, Ticket
from gencaps.service.examples import examples
from gencaps.service.limits import Limits
from gencaps.service.meters import Meters
from gencaps.service.outbox import Outbox
from gencaps.service.problems import Problem, refusal
from gencaps.service.questions import Question
from gencaps.service.reading import read, wanted
from gencaps.service.together import Together, stand_in
from gencaps.service.upload import open_picture

RETRY_S = 1
CLIENT_LEFT = 499
"""What servers note for a request whose client has left; nobody reads it."""


class Places:
    """Counts the requests inside, from any thread."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Takes a place, if there is one."""
        with self._lock:
            free = self.taken < self.most
            self.taken += free
            return free

    def leave(self) -> None:
        """Gives a place back."""
        with self._lock:
            self.taken -= 1


def _later(why: str) -> Problem:
    return Problem(503, why, remedy=f"try again after {RETRY_S} s", headers={"Retry-After": str(RETRY_S)})


class Desk:
    """Answers questions about some models, which are known by id alone."""

    def __init__(self, models: Mapping[str, Capsules], limits: Limits) -> None:
        self.models, self.limits = dict(models), limits
        self.can = {id: offers(capsules) for id, capsules in self.models.items()}
        self.places = Places(limits.queue)
        self.meters = Meters(lambda: self.places.taken)
        self._pool = ThreadPoolExecutor(limits.decoders, "gencaps-decode")
        self.batchers = {
            id: Batcher(capsules.model, limits, partial(self._note, id), self._pool)
            for id, capsules in self.models.items()
        }
        self._shared = {id: stand_in(capsules.model) for id, capsules in self.models.items()}
        self._examples: dict[str, Examples] = {}
        self._looking = asyncio.Lock()
        self._outbox: Outbox | None = None

    def _note(self, id: str, work: str, calls: int) -> None:
        self.meters.batches.labels(id, work).observe(calls)

    def listed(self) -> Models:
        """Describes the models."""
        return Models(models=[about(id, capsules, self.can[id]) for id, capsules in self.models.items()])

    def prepare(self) -> None:
        """Begins to find the examples of every model, so that the first visitor need not wait for them."""
        for id, capsules in self.models.items():
            self._pool.submit(lambda id=id, one=capsules: self._examples.setdefault(id, examples(one)))

    async def examples(self, id: str) -> Examples:
        """Gives pictures to try a model with, found once."""
        if id not in self.models:
            raise self._unknown(id)
        async with self._looking:
            if id not in self._examples:
                find = partial(examples, self.models[id])
                self._examples[id] = await asyncio.get_running_loop().run_in_executor(self._pool, find)
            return self._examples[id]

    def _unknown(self, id: str) -> Problem:
        return Problem(404, f"there is no model '{id[:100]}'{nearest(id[:100], self.models)}", field="id")

    def close(self) -> None:
        """Ends all threads."""
        for batcher in self.batchers.values():
            batcher.close()
        self._pool.shutdown(cancel_futures=True)

    async def answer(self, request: Request, id: str, act: Act) -> Response:
        """Answers one question, in a batch with others; refuses it at once where every place is taken."""
        self._check(id, act)
        form = wanted(request, forms(act))
        if not self.places.take():
            raise _later(f"{self.limits.queue} requests are inside already")
        ticket = Ticket()
        try:
            question = await read(request, act.question, self.limits.upload_s)
            work = self.batchers[id].submit(ticket, partial(self._work, ticket, id, act, question, form))
        except BaseException:
            self.places.leave()
            raise
        # the place is free when the work has ended, which may be after the client has left
        work.add_done_callback(lambda done: self.places.leave())
        return await self._unless_left(request, ticket, work)

    def _check(self, id: str, act: Act) -> None:
        if id not in self.models:
            raise self._unknown(id)
        if act.name not in self.can[id]:
            can = ", ".join(self.can[id])
            raise Problem(422, f"the model '{id}' cannot {act.name}", field="id", remedy=f"it can {can}")

    def _work(self, ticket: Ticket, id: str, act: Act, question: Question, form: str) -> Response:
        """Does all that takes time: decodes, asks the model, encodes."""
        batcher = self.batchers[id]
        capsules = Together(self.models[id], batcher, ticket, self._shared[id])
        opened = {}
        for name in question.pictures:
            data = getattr(question, name)
            if data is not None:
                opened[name] = open_picture(data, name, capsules.fitted, batcher.apart)
        try:
            answer = act.run(capsules, question, opened)
        except GencapsError as error:
            raise refusal(error) from None
        return render(answer, form)

    async def _unless_left(self, request: Request, ticket: Ticket, work: Future[Response]) -> Response:
        """Waits for the work, or for the client to leave: then what has not begun is not done."""
        answer = self._answer_of(work)
        gone = asyncio.ensure_future(_left(request))
        gone.add_done_callback(lambda done: answer.cancel())
        try:
            return await answer
        except Dropped:
            raise _later("the service is closing") from None
        except asyncio.CancelledError:
            if not gone.done():
                raise
            self.meters.dropped.inc()
            return Response(status_code=CLIENT_LEFT)
        finally:
            # the work itself stays in the queue until its turn, and keeps its place: the queue never holds more
            ticket.dropped = not work.done()
            gone.cancel()

    def _answer_of(self, work: Future[Response]) -> asyncio.Future[Response]:
        loop = asyncio.get_running_loop()
        if self._outbox is None or self._outbox.loop is not loop:
            self._outbox = Outbox(loop)
        return self._outbox.expect(work)


async def _left(request: Request) -> None:
    """Ends when the client has left: after the body nothing else is received."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
