"""A service over the models that come along and a tiny one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: the service is an extra")

if TYPE_CHECKING:
    from gencaps.api import Capsules


@pytest.fixture(scope="session", autouse=True)
def shapes_by_fibre() -> Iterator[None]:
    """Keeps what the shape checks remember of a call apart for each fibre; they know threads alone."""
    from greenlet import getcurrent
    from jaxtyping import _storage

    class ByFibre:
        def __getattr__(self, name: str) -> Any:
            try:
                return getcurrent().__dict__[name]
            except KeyError:
                raise AttributeError(name) from None

        def __setattr__(self, name: str, value: Any) -> None:
            getcurrent().__dict__[name] = value

    threads, _storage._shape_storage = _storage._shape_storage, ByFibre()  # pyright: ignore[reportAttributeAccessIssue]
    yield
    _storage._shape_storage = threads


@pytest.fixture(scope="session")
def models(trained_digits: Path) -> dict[str, Capsules]:
    """The models, by id."""
    from gencaps.service.models import gather

    return gather([str(trained_digits)], "cpu")


@pytest.fixture(scope="session")
def client(models: dict[str, Capsules]) -> Iterator[Any]:
    """A client of a service that runs in this process."""
    from starlette.testclient import TestClient

    from gencaps.service.app import make_app
    from tests.service.helpers import HOST

    with TestClient(make_app(models), base_url=HOST, raise_server_exceptions=False) as found:
        yield found


@pytest.fixture(scope="session")
def face(models: dict[str, Capsules]) -> bytes:
    """A face without a hat, as a PNG."""
    from tests.service.helpers import encoded

    return encoded(models["faces"].generate(attributes="Hat=0", n=1, seed=5).sheet())
