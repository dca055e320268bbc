"""Loads the service with many clients at once, in batches and one by one in turn, and writes what it measured.

    python benchmarks/serving.py --out docs/results/serving_cpu.json runs/demo
    python benchmarks/serving.py --out /tmp/one.json --requests 2000 --clients 16 faces

Mixed questions, of which one in twenty is malformed, go to two services of the same models: one runs what arrives
together as one batch, the other is the same with batches of one. Every answer's status is compared with the one that
is documented for its question. Clients are few lines over a socket, as they share the machine with the service.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROUND = 500
"""Requests to one service before it is the other's turn: what else the machine does hits both."""
FIRST = 1_000
"""Requests after which memory should be flat."""


class Service(NamedTuple):
    """A service that runs beside this process."""

    process: subprocess.Popen[bytes]
    port: int
    ready_s: float

    def busy_s(self) -> float:
        """Reads how long its threads have computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Reads how much memory it holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


class Asked(NamedTuple):
    """A request as bytes, and the statuses with which it may be answered."""

    name: str
    data: bytes
    statuses: tuple[int, ...]


def serve(models: list[str], batch: int) -> None:
    """Runs a service whose batches have at most so many pictures; tells its port in a line."""
    from gencaps.api import load
    from gencaps.service.app import make_app
    from gencaps.service.limits import Limits
    from gencaps.service.run import listen, run

    with listen("127.0.0.1", 0) as door:
        print(door.getsockname()[1], flush=True)
        loaded = {f"m{k}": load(name, "cpu") for k, name in enumerate(models)}
        run(make_app(loaded, limits=Limits(batch=batch)), door, browser=False)


@contextmanager
def service(models: list[str], batch: int) -> Iterator[Service]:
    """Starts a service and waits until it answers."""
    began_s = time.perf_counter()
    command = [sys.executable, __file__, "--batch", str(batch), *models]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        process.stdout.readline()  # that it answers
        yield Service(process, port, time.perf_counter() - began_s)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def post(path: str, body: bytes, kind: str = "application/json") -> bytes:
    """Writes a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def questions(port: int) -> tuple[list[Asked], list[Asked]]:
    """Makes good questions, which fit what each model can do, and malformed ones."""
    with urllib.request.urlopen(f"http://localhost:{port}/v1/models") as answer:
        models = json.load(answer)["models"]
    good: list[Asked] = []
    for model in models:
        good += about(port, model)
    path = f"/v1/models/{models[0]['id']}/"
    picture = base64.b64decode(painted(port, models[0], 1)[0])
    bodies = [
        ("not JSON", post(path + "generate", b"{"), (400,)),
        ("NaN", post(path + "generate", b'{"n": NaN}'), (400,)),
        ("1e9 pictures", post(path + "generate", b'{"n": 1000000000}'), (422,)),
        ("no such field", post(path + "generate", b'{"m": 3}'), (422,)),
        ("no picture", post(path + "reconstruct", b'{"picture": "QUJD"}'), (415,)),
        ("half a picture", post(path + "reconstruct", asking(picture[: len(picture) // 2])), (422,)),
        ("a path for an id", post("/v1/models/..%2F..%2Fetc/generate", b"{}"), (404,)),
        ("a form without end", post(path + "reconstruct", b"--x", "multipart/form-data; boundary=x"), (400, 422)),
    ]
    return good, [Asked(*one) for one in bodies]


def asking(picture: bytes, **fields: Any) -> bytes:
    return json.dumps({"picture": base64.b64encode(picture).decode(), **fields}).encode()


def painted(port: int, model: dict[str, Any], n: int) -> list[str]:
    """Has a model paint pictures, in base64."""
    body = json.dumps({"n": n, "seed": 1}).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://localhost:{port}/v1/models/{model['id']}/generate", body, headers)
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)["pictures"]


def about(port: int, model: dict[str, Any]) -> list[Asked]:
    """Makes the questions that one model can answer, each of several pictures or seeds."""
    pictures = [base64.b64decode(one) for one in painted(port, model, 8)][:8]
    classes = model["labels"] == "classes"
    found: list[Asked] = []

    def add(name: str, body: bytes) -> None:
        found.append(Asked(name, post(f"/v1/models/{model['id']}/{name}", body), (200,)))

    for k, picture in enumerate(pictures):
        for name in {"classify", "reconstruct"} & set(model["can"]):
            add(name, asking(picture))
        if "edit" in model["can"]:
            add("edit", asking(picture, wishes=k % len(model["names"]) if classes else {model["names"][0]: k % 2}))
        one = {"classes": [k % len(model["names"])]} if classes and "classify" in model["can"] else {}
        add("generate", json.dumps({"n": 1, "seed": k, **one}).encode())
    return found


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Asked) -> int:
    """Sends a request and reads its answer; gives the status."""
    writer.write(asked.data)
    head = await reader.readuntil(b"\r\n\r\n")
    low = head.lower()
    at = low.index(b"content-length:") + 15
    await reader.readexactly(int(low[at : low.index(b"\r", at)]))
    return int(head[9:12])


class Load:
    """What one service was asked and how it answered."""

    def __init__(self, port: int, clients: int, seed: int, good: list[Asked], bad: list[Asked]) -> None:
        self.port, self.clients, self.good, self.bad = port, clients, good, bad
        self.chance = random.Random(seed)
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.seconds: list[float] = []
        self.took_s = 0.0
        self.rates: list[float] = []

    async def round(self, requests: int) -> None:
        """Sends so many requests from all clients, each the next as soon as it has its answer."""
        left = [self.chance.choice(self.bad if self.chance.random() < 0.05 else self.good) for _ in range(requests)]
        began_s = time.perf_counter()
        await asyncio.gather(*(self._client(left) for _ in range(self.clients)))
        took_s = time.perf_counter() - began_s
        self.took_s += took_s
        self.rates.append(requests / took_s)

    async def _client(self, left: list[Asked]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while left:
            asked = left.pop()
            began_s = time.perf_counter()
            status = await ask(reader, writer, asked)
            self.seconds.append(time.perf_counter() - began_s)
            self.statuses[f"{asked.name}: {status}"] += 1
            if status not in asked.statuses:
                self.wrong.append(f"{asked.name}: {status}")
        writer.close()

    def found(self) -> dict[str, Any]:
        """Sums up."""
        ordered = sorted(self.seconds)
        return {
            "requests": len(ordered),
            "requests_a_second": len(ordered) / self.took_s,
            "requests_a_second_by_round": self.rates,
            "p50_ms": 1000 * statistics.median(ordered),
            "p99_ms": 1000 * ordered[len(ordered) * 99 // 100],
            "answered_otherwise_than_documented": self.wrong,
            "answers": dict(sorted(self.statuses.items())),
        }


async def _killed(load: Load, service: Service) -> None:
    """Kills a service in the midst of its work."""
    clients = [asyncio.create_task(load._client([random.choice(load.good) for _ in range(50)])) for _ in range(64)]
    await asyncio.sleep(1)
    service.process.kill()
    await asyncio.gather(*clients, return_exceptions=True)


def restart(models: list[str], clients: int) -> dict[str, Any]:
    """Kills a service under load and starts it again; gives how long it took to answer, and whether it answers well."""
    with service(models, 64) as first:
        asyncio.run(_killed(Load(first.port, clients, 0, *questions(first.port)), first))
    with service(models, 64) as again:
        load = Load(again.port, clients, 0, *questions(again.port))
        asyncio.run(load.round(ROUND))
        return {"ready_again_s": again.ready_s, "answered_otherwise_than_documented": load.wrong}


def measure(models: list[str], clients: int, requests: int, alone: int) -> dict[str, Any]:
    """Loads both services in turn."""
    with service(models, 64) as batched, service(models, 1) as single:
        loads = [Load(one.port, clients, 0, *questions(one.port)) for one in (batched, single)]
        for load in loads:
            asyncio.run(load.round(ROUND))  # warms up
            load.__init__(load.port, clients, 1, load.good, load.bad)
        memory, busy_s = [(0, batched.resident_mb())], [one.busy_s() for one in (batched, single)]
        for done in range(ROUND, requests + 1, ROUND):
            asyncio.run(loads[0].round(ROUND))
            memory.append((done, batched.resident_mb()))
            if done <= alone:
                asyncio.run(loads[1].round(ROUND))
            print(f"{done} {loads[0].rates[-1]:.0f}/s, one by one {loads[1].rates[-1]:.0f}/s", flush=True)
        first = next(mb for done, mb in memory if done >= min(FIRST, requests))
        together, one = (load.found() for load in loads)
        for side, at, before_s in zip((together, one), (batched, single), busy_s, strict=True):
            side["busy_ms_a_request"] = 1000 * (at.busy_s() - before_s) / side["requests"]
        pairs = list(zip(loads[0].rates, loads[1].rates, strict=False))
        return {
            "gain": statistics.median(a / b for a, b in pairs),
            "gain_in_cpu_time": one["busy_ms_a_request"] / together["busy_ms_a_request"],
            "gain_by_round": [a / b for a, b in pairs],
            "memory_growth": memory[-1][1] / first - 1,
            "memory_mb": memory,
            "ready_s": batched.ready_s,
            "batched": together,
            "one_by_one": one,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--alone", type=int, default=3_000, help="requests that are asked one by one, too")
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is not None:
        serve(options.models, options.batch)
        return
    from gencaps.api import load
    from gencaps.engine.devices import choose_device
    from gencaps.engine.run import environment

    found = {
        "what": f"{options.requests} mixed requests from {options.clients} clients, one in twenty malformed",
        "models": [repr(load(name, "cpu")) for name in options.models],
        **measure(options.models, options.clients, options.requests, options.alone),
        "killed_under_load": restart(options.models, options.clients),
        "command": shlex.join(["python", "benchmarks/serving.py", *sys.argv[1:]]),
        **environment(choose_device("cpu")),
    }
    for side in ("batched", "one_by_one"):
        rate, p50, busy = (found[side][name] for name in ("requests_a_second", "p50_ms", "busy_ms_a_request"))
        print(f"{side}: {rate:.0f} requests/s, p50 {p50:.0f} ms, busy {busy:.2f} ms a request")
    gain, in_cpu_time, growth = (found[name] for name in ("gain", "gain_in_cpu_time", "memory_growth"))
    print(f"gain {gain:.2f}, in CPU time {in_cpu_time:.2f}, memory {100 * growth:+.1f} % after the first {FIRST}")
    print("wrong:", found["batched"]["answered_otherwise_than_documented"][:5])
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
