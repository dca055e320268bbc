"""Whatever fits the documented schema, or just misses it, is answered as documented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from gencaps.api import Capsules, load
from gencaps.service.app import make_app
from tests.service.helpers import HOST

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'gencaps[dev]'")
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    negative_data_rejection,
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
def api(trained_digits: Path) -> Any:
    """The schema of a service with one tiny model."""
    digits: Capsules = load(trained_digits, "cpu")
    app = make_app({"digits": digits})
    yield schemathesis.openapi.from_asgi("/openapi.json", app, base_url=HOST)
    app.state.desk.close()


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_documented(case: Any) -> None:
    if "id" in case.path_parameters and len(str(case.body)) % 4:
        case.path_parameters["id"] = "digits"  # by chance it would hardly ever be found
    case.call_and_validate(checks=CHECKS)
