"""What the service counts, in Prometheus' text."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.5, 1, 2, 5, 10)
ROUTE = "gencaps.route"
"""Where a plain route notes in the scope what it is called; FastAPI's note themselves."""
CALLS = (1, 2, 4, 8, 16, 32, 64)


class Meters:
    """The counters of one application."""

    def __init__(self, inside: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "gencaps_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "gencaps_request_seconds", "Time to the answer", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.batches = Histogram(
            "gencaps_batch_calls", "Calls run as one", ["model", "work"], buckets=CALLS, registry=self.registry
        )
        self.dropped = Counter("gencaps_dropped", "Requests whose client left", registry=self.registry)
        Gauge("gencaps_requests_inside", "Requests being answered", registry=self.registry).set_function(inside)

    def text(self) -> bytes:
        """Writes all counters."""
        return generate_latest(self.registry)


class Metered:
    """Counts requests by route and status; unknown routes are one, or anybody could fill the memory with names."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self.app, self.meters = app, meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and notes its status and time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, began_s = 500, time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            route = scope.get(ROUTE) or getattr(scope.get("route"), "path", "unknown")
            method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD") else "other"
            self.meters.requests.labels(method, route, status).inc()
            self.meters.seconds.labels(route).observe(time.perf_counter() - began_s)
