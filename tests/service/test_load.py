"""Many clients at once: batches, a full queue, clients that leave."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gencaps.api import Capsules
from gencaps.service.app import make_app
from gencaps.service.batching import Batcher
from gencaps.service.limits import Limits
from tests.service.helpers import HOST, complaint, text

CLASSIFY = "/v1/models/digits/classify"


class Held:
    """A batcher whose model waits for a sign, and counts what it is asked."""

    def __init__(self, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batcher: Batcher = app.state.desk.batchers["digits"]
        self.asked: list[int] = []
        self.began, self.go = threading.Event(), threading.Event()
        model = self.batcher.model
        real = model.classify

        def classify(x: Any) -> Any:
            self.began.set()
            self.go.wait(60)
            self.asked.append(len(x))
            return real(x)

        monkeypatch.setattr(model, "classify", classify)


async def until(condition: Callable[[], Any]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def talk(app: Any, conversation: Callable[[httpx2.AsyncClient], Awaitable[None]]) -> None:
    """Lets clients talk to an application in this process."""

    async def run() -> None:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=HOST, timeout=60) as client:
            await conversation(client)

    try:
        asyncio.run(run())
    finally:
        app.state.desk.close()


def test_requests_that_arrive_together_run_as_one_batch(
    models: dict[str, Capsules], a: Path, b: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(models, limits=Limits(wait_s=0.0))
    pictures = [a.read_bytes(), b.read_bytes()] * 8
    alone = [models["digits"].classify(path) for path in (a, b)]
    held = Held(app, monkeypatch)

    async def conversation(client: httpx2.AsyncClient) -> None:
        first = asyncio.create_task(client.post(CLASSIFY, files={"picture": pictures[0]}))
        await until(held.began.is_set)
        # the model is busy: these wait, with two bad ones among them
        bad = [b"no picture", pictures[0][:-9]]
        others = [asyncio.create_task(client.post(CLASSIFY, files={"picture": p})) for p in [*pictures, *bad]]
        await until(lambda: len(held.batcher._new) == len(others))
        held.go.set()
        answers = await asyncio.gather(*others)
        assert (await first).status_code == 200
        for k, answer in enumerate(answers[:-2]):
            wanted = alone[k % 2]
            assert answer.json()["label"] == wanted.label[0]
            found = list(answer.json()["presence"].values())
            assert found == pytest.approx(wanted.presence[0].tolist(), abs=1e-5)
        complaint(answers[-2], 415, "picture")
        complaint(answers[-1], 422, "picture")
        metrics = (await client.get("/metrics")).text
        assert 'gencaps_batch_calls_sum{model="digits",work="classify"} 17.0' in metrics
        assert 'gencaps_batch_calls_count{model="digits",work="classify"} 2.0' in metrics

    talk(app, conversation)
    assert held.asked == [1, 16]  # forward passes of the model


def test_a_full_queue_answers_503_and_when_to_come_again(
    models: dict[str, Capsules], a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(models, limits=Limits(queue=3))
    held = Held(app, monkeypatch)
    asked = {"picture": text(a.read_bytes())}

    async def conversation(client: httpx2.AsyncClient) -> None:
        inside = [asyncio.create_task(client.post(CLASSIFY, json=asked)) for _ in range(3)]
        await until(lambda: app.state.desk.places.taken == 3)
        for _ in range(5):
            answer = await client.post(CLASSIFY, json=asked)
            complaint(answer, 503, None, "try again")
            assert int(answer.headers["retry-after"]) >= 1
        assert (await client.get("/healthz")).status_code == 200
        held.go.set()
        assert [answer.status_code for answer in await asyncio.gather(*inside)] == [200] * 3
        assert (await client.post(CLASSIFY, json=asked)).status_code == 200

    talk(app, conversation)


def test_refused_requests_give_their_place_back(models: dict[str, Capsules]) -> None:
    app = make_app(models, limits=Limits(queue=1))

    async def conversation(client: httpx2.AsyncClient) -> None:
        for body in ({"picture": "QUJD"}, {"picture": 3}, {"nothing": 1}):
            assert (await client.post(CLASSIFY, json=body)).status_code in (415, 422)
        assert (await client.post(CLASSIFY, content=b"{", headers={"content-type": "application/json"})).is_error
        await until(lambda: app.state.desk.places.taken == 0)

    talk(app, conversation)


def asgi(body: bytes, path: str = CLASSIFY) -> dict[str, Any]:
    headers = [(b"host", HOST.removeprefix("http://").encode()), (b"content-type", b"application/json")]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8765),
        "root_path": "",
    }


def test_a_request_whose_client_left_is_dropped(
    models: dict[str, Capsules], a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(models, limits=Limits(wait_s=0.0))
    held = Held(app, monkeypatch)
    asked = {"picture": text(a.read_bytes())}

    async def leaving() -> None:
        """Sends a request and leaves once it waits for the model."""
        body, sent = json.dumps(asked).encode(), False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            await until(lambda: held.batcher._new)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        await app(asgi(body), receive, send)

    async def conversation(client: httpx2.AsyncClient) -> None:
        first = asyncio.create_task(client.post(CLASSIFY, json=asked))
        await until(held.began.is_set)
        await leaving()
        assert app.state.desk.places.taken == 2  # the one that left still stands in the queue
        held.go.set()
        assert (await first).status_code == 200
        await until(lambda: app.state.desk.places.taken == 0)
        assert "gencaps_dropped_total 1.0" in (await client.get("/metrics")).text

    talk(app, conversation)
    assert held.asked == [1]


def test_a_request_that_never_arrives_is_given_up(models: dict[str, Capsules]) -> None:
    app = make_app(models, limits=Limits(upload_s=0.05))

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async def conversation(client: httpx2.AsyncClient) -> None:
        headers = {"content-type": "application/json"}
        complaint(await client.post(CLASSIFY, content=slowly(), headers=headers), 408, None, "again")
        assert app.state.desk.places.taken == 0

    talk(app, conversation)
