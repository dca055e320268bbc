"""Starts the service on an address."""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
import webbrowser
from collections.abc import Callable

import torch
import uvicorn
from fastapi import FastAPI

from gencaps.errors import GencapsError
from gencaps.service.guard import LOOPBACK


def check_address(host: str, key: str | None) -> None:
    """Refuses an address that others can reach, unless a key is asked of them."""
    if key is None and not is_loopback(host):
        raise GencapsError(
            f"--host {host} can be reached from outside: give --api-key KEY (or GENCAPS_API_KEY), or stay on 127.0.0.1"
        )
    if key is not None and (not key.strip() or not key.isascii()):
        raise GencapsError("the API key is empty or not ASCII: give another, such as that of openssl rand -hex 16")


def is_loopback(host: str) -> bool:
    """Tells whether an address reaches this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Takes an address before anything is loaded; port 0 is any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GencapsError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port") from None


class Server(uvicorn.Server):
    """Calls back once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, then says so."""
        await super().startup(sockets)
        self.ready()


def run(app: FastAPI, door: socket.socket, *, browser: bool = True) -> None:
    """Answers on an open socket until it is told to stop."""
    host, port = door.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    # one core is left for the requests themselves
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 2) - 1)))

    # what was loaded stays: looking through it for what can be forgotten takes tenths of a second
    gc.collect()
    gc.freeze()

    def ready() -> None:
        print(f"gencaps answers on {address} (stop with Ctrl-C); what can be asked: {address}openapi.json", flush=True)
        app.state.desk.prepare()
        if browser:
            webbrowser.open(address)

    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    Server(config, ready).run([door])


def known_hosts(host: str) -> tuple[str, ...]:
    """Lists the names under which a service on this address may be asked without a key."""
    return (*LOOPBACK, host)
