"""Who may ask: holders of the key; without a key, programs and pages of this machine alone."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from fastapi import Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from gencaps.service.problems import Problem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_bearer = HTTPBearer(auto_error=False, description="the key that `gencaps serve` was given; none without one")


class Guard:
    """Lets a request pass, or refuses it."""

    def __init__(self, key: str | None, hosts: Collection[str] = LOOPBACK) -> None:
        self.key, self.hosts = key, hosts

    async def __call__(self, request: Request, given: HTTPAuthorizationCredentials | None = Security(_bearer)) -> None:
        """Is how FastAPI asks; the scheme is there for the documentation."""
        self.check(request)

    def check(self, request: Request) -> None:
        """Refuses a wrong key; without a key, names of other hosts and pages of other sites."""
        if self.key is None:
            self._check_origin(request)
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.key.encode()):
            what = "the API key is wrong" if scheme.lower() == "bearer" else "no API key was given"
            raise Problem(
                401, what, field="Authorization", remedy="send the header 'Authorization: Bearer KEY'",
                headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip

    def _check_origin(self, request: Request) -> None:
        # a page on the web can make its own name mean 127.0.0.1 and its visitors' browsers ask: the name shows it
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if _parts(f"//{host}").hostname not in self.hosts:
            raise Problem(403, f"this service is not called '{host[:100]}'", field="Host", remedy="ask 127.0.0.1")
        if origin is not None and _parts(origin).netloc != host:
            raise Problem(403, "pages of other sites may not ask", field="Origin", remedy="start it with an API key")


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # of a bracket that does not close, for example
        return urlsplit("")
