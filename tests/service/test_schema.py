"""Whatever fits the documented schema, or just misses it, is answered as documented."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import DataObject, data, integers

from gencaps.api import Capsules, load
from gencaps.service.app import make_app
from gencaps.service.run import Server, listen
from tests.service.helpers import text

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'gencaps[dev]'")
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

# a text that is base64 but no picture fits the schema and is refused: acceptance alone is not checked
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def address(trained_digits: Path) -> Iterator[str]:
    """A service with one tiny model, which runs on a port of this machine."""
    digits: Capsules = load(trained_digits, "cpu")
    ready = threading.Event()
    with listen("127.0.0.1", 0) as door:
        server = Server(uvicorn.Config(make_app({"digits": digits}), log_level="warning"), ready.set)
        thread = threading.Thread(target=server.run, args=([door],))
        thread.start()
        try:
            assert ready.wait(60)
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


# what is documented does not depend on the models
SCHEMA = schemathesis.openapi.from_dict(make_app({}).openapi())
OPERATIONS = {one.ok().label: one.ok() for one in SCHEMA.get_all_operations()}
TRIED = [(label, mode) for label in sorted(OPERATIONS) for mode in schemathesis.GenerationMode]

FEW = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def test_every_operation_is_found() -> None:
    assert len(OPERATIONS) == 17


@pytest.mark.parametrize(("label", "mode"), TRIED, ids=lambda part: getattr(part, "value", part))
def test_answers_are_documented(address: str, label: str, mode: Any, a: Path) -> None:
    """Tries what the schema allows, and what it forbids."""
    if label == "GET /healthz" and mode is schemathesis.GenerationMode.NEGATIVE:
        pytest.skip("GET /healthz takes nothing that could be wrong")
    statuses: Counter[int] = Counter()

    @FEW
    @given(data())
    def run(draw: DataObject) -> None:
        case = draw.draw(OPERATIONS[label].as_strategy(generation_mode=mode))
        # by chance no id would ever be a model's, and no text a picture
        if draw.draw(integers(0, 9)) and "id" in case.path_parameters:
            case.path_parameters["id"] = "digits"
        if draw.draw(integers(0, 2)) and isinstance(case.body, dict):
            put_in(case, a.read_bytes())
        statuses[case.call_and_validate(base_url=address, checks=CHECKS).status_code] += 1

    run()
    assert sum(statuses.values()) > 0
    if mode is schemathesis.GenerationMode.POSITIVE and not label.endswith(
        ("explain", "move", "walk", "explore", "score")
    ):
        assert statuses[200] > 0


def put_in(case: Any, picture: bytes) -> None:
    """Puts a picture in place of every text that should be one, and a wish that can be fulfilled."""
    whole = picture if case.media_type == "multipart/form-data" else text(picture)
    case.body |= {name: whole for name in ("picture", "start", "end", "like") if name in case.body}
    case.body |= {"wishes": 7} if "wishes" in case.body else {}
    if "on" in case.body:
        case.body |= {"capsules": [[0.5] * 8] * 10, "on": [1.0] * 10}
