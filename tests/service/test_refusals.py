"""Whatever is asked wrongly is answered 4xx, in one form, by field and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gencaps.errors import GencapsError
from gencaps.service.problems import refusal
from tests.service.helpers import complaint, text

GENERATE, EDIT = "/v1/models/digits/generate", "/v1/models/faces/edit"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("asked", "field", "word"),
    [
        ({"n": 10**9}, "n", "64"),
        ({"n": 0}, "n", "1"),
        ({"n": 64}, "n", "256 pictures"),  # 64 of each of 10 classes
        ({"n": "8"}, "n", "integer"),
        ({"n": True}, "n", "integer"),
        ({"seed": -1}, "seed", "0"),
        ({"seed": 2**64}, "seed", "whole number"),
        ({"seed": 1.5}, "seed", "integer"),
        ({"classes": []}, "classes", "1"),
        ({"classes": ["11"]}, "classes", "'11'"),
        ({"classes": [10]}, "classes", "'10'"),
        ({"classes": ["../../etc/passwd"]}, "classes", "class"),
        ({"attributes": {"Hat": 1}}, "attributes", "ask for classes"),
        ({"clases": ["3"]}, "clases", "did you mean 'classes'"),
        ({"like": "/etc/passwd"}, "like", "base64"),
        ({"like": 5}, "like", "base64"),
    ],
)
def test_bad_fields_are_named(client: Any, asked: dict[str, Any], field: str, word: str) -> None:
    complaint(client.post(GENERATE, json=asked), 422, field, word)


@pytest.mark.parametrize(
    ("asked", "field", "word"),
    [
        ({}, "wishes", "required"),
        ({"wishes": {}}, "wishes", "such as"),
        ({"wishes": {"Hatt": 1}}, "wishes", "did you mean 'Hat'"),
        ({"wishes": "Hat"}, "wishes", "Hat=1"),
        ({"wishes": {"Hat": 2}}, "wishes", "give 1 or 0"),
        ({"wishes": "Hat=1,Hat=0"}, "wishes", "both on and off"),
        ({"wishes": 3}, "wishes", "attributes"),
        ({"wishes": "Hat=1", "styles": 17}, "styles", "16"),
        ({"wishes": "Hat=1", "intensity": 1.5}, "intensity", "0 to 1"),
        ({"wishes": "Hat=1", "intensity": []}, "intensity", "0 to 1"),
        ({"wishes": "Hat=1", "intensity": [0.5] * 17}, "intensity", "several"),
    ],
)
def test_bad_edits_are_named(client: Any, face: bytes, asked: dict[str, Any], field: str, word: str) -> None:
    complaint(client.post(EDIT, json={"picture": text(face), **asked}), 422, field, word)


@pytest.mark.parametrize(
    "body",
    [
        b'{"n": NaN}',
        b'{"n": Infinity}',
        b'{"n": -Infinity}',
        b'{"n": 1e999}',
        b'{"n": ' + b"9" * 5000 + b"}",
        b"{",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": ' * 50_000,
    ],
)
def test_what_is_no_json_is_refused(client: Any, body: bytes) -> None:
    complaint(client.post(GENERATE, content=body, headers=JSON), 400, None, "JSON")


@pytest.mark.parametrize("body", [b"[]", b"3", b'"text"', b"null"])
def test_json_that_is_no_object_is_refused(client: Any, body: bytes) -> None:
    complaint(client.post(GENERATE, content=body, headers=JSON), 422, None, "object")


def test_half_a_character_can_be_told(client: Any) -> None:
    for body in (b'{"\\ud800": 1}', b'{"classes": ["\\ud800"]}', b'{"attributes": {"\\udfff\\u0000": 1}}'):
        answer = client.post(GENERATE, content=body, headers=JSON)
        complaint(answer, 422, answer.json()["field"])


@pytest.mark.parametrize(
    "headers", [{}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}]
)
def test_other_types_of_body_are_refused(client: Any, headers: dict[str, str]) -> None:
    complaint(client.post(GENERATE, content=b"{}", headers=headers), 415, None, "application/json")


def test_bad_forms_are_refused(client: Any, a: Path) -> None:
    url, data = "/v1/models/digits/reconstruct", a.read_bytes()
    broken = {"content-type": "multipart/form-data; boundary=x"}
    complaint(client.post(url, content=b"--x\r\nnothing", headers=broken), 422, "picture", "required")
    complaint(client.post(url, content=b"--x", headers={"content-type": "multipart/form-data"}), 400, None, "form")
    complaint(client.post(url, files={"image": data}), 422, "image", "name it picture")
    complaint(client.post(url, files={"picture": data}, data={"seed": "3"}), 422, "seed", "'question'")
    complaint(client.post(url, files=[("picture", data)] * 2), 422, "picture", "once")
    complaint(client.post(url, files=[("picture", data)] * 9), 400, None, "form")
    both = {"files": {"picture": data}, "data": {"question": '{"picture": "QUJD"}'}}
    complaint(client.post(url, **both), 422, "picture", "once")
    complaint(client.post(url, files={"picture": data}, data={"question": "[1]"}), 422, None, "object")
    complaint(client.post(url, files={"picture": data}, data={"question": "{"}), 400, None, "JSON")
    complaint(client.post(url, files={"picture": data, "question": b"{}"}), 422, "question", "name it picture")


@pytest.mark.parametrize(
    "id",
    [
        "nobody",
        "..",
        "%2e%2e",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%5c..%5cwindows",
        "faces%00",
        "faces%2f",
        "%2ffaces",
        "FACES",
        "faces%0a",
        "owner%2fmodel",
        "%ff%fe",
        "a" * 5000,
    ],
)
def test_models_are_found_by_id_alone(client: Any, id: str) -> None:
    answer = client.post(f"/v1/models/{id}/classify", json={})
    complaint(answer, 404, answer.json()["field"])


def test_a_folder_is_no_id_even_where_it_holds_a_model(client: Any, trained_digits: Path) -> None:
    path = str(trained_digits).replace("/", "%2f")
    answer = client.post(f"/v1/models/{path}/generate", json={})
    complaint(answer, 404, answer.json()["field"])


def test_a_mistyped_id_is_offered_the_nearest(client: Any) -> None:
    complaint(client.post("/v1/models/face/classify", json={}), 404, "id", "did you mean 'faces'")


def test_unknown_addresses_and_methods_are_refused_in_the_same_form(client: Any) -> None:
    complaint(client.get("/nothing"), 404)
    complaint(client.get(GENERATE), 405)
    complaint(client.delete("/v1/models"), 405)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("n is 0; ask for at least 1", "ask for at least 1"),
        ("this model has classes, no attributes: ask for classes", "ask for classes"),
        ("no class 'x' (did you mean 'y'?)", "did you mean 'y'?"),
        ("no class 'x' (known: a, b)", "known: a, b"),
        ("it is wrong", "see /openapi.json for what can be asked"),
    ],
)
def test_the_remedy_is_read_off_the_line(line: str, remedy: str) -> None:
    assert refusal(GencapsError(line)).remedy == remedy


def test_what_fails_inside_is_not_told(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient

    from gencaps.service.app import make_app
    from tests.service.helpers import HOST

    def fail(*arguments: Any) -> None:
        raise RuntimeError("a secret")

    app = make_app(models)
    with TestClient(app, base_url=HOST, raise_server_exceptions=False) as client:
        monkeypatch.setattr(app.state.desk.batchers["digits"], "ask", fail)
        answer = client.post(GENERATE, json={"n": 1})
        complaint(answer, 500)
        assert "secret" not in answer.text
        assert "gencaps_requests_inside 0.0" in client.get("/metrics").text
