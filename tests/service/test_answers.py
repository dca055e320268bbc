"""Each endpoint gives what the Python API gives, number by number and pixel by pixel."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gencaps.api import Capsules
from gencaps.engine.pretrained import shipped
from gencaps.figures import to_bytes
from gencaps.painted import Painted
from tests.service.helpers import complaint, encoded, pixels, text

Models = dict[str, Capsules]


def same(answer: dict[str, Any], painted: Painted) -> None:
    """Holds where an answer is a painting of the API: a library may add up in another order, by one grey level."""
    assert (answer["labels"], answer["columns"]) == (painted.labels, painted.columns)
    wanted = to_bytes(painted.pictures).astype(int)
    assert len(answer["pictures"]) == len(wanted)
    for found, picture in zip(answer["pictures"], wanted, strict=True):
        shown = pixels(found)
        assert np.abs(shown.reshape(picture.shape) - picture).max() <= 1


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def test_models_are_listed_with_what_they_can_do(client: Any, models: Models) -> None:
    listed = {one["id"]: one for one in client.get("/v1/models").json()["models"]}
    assert set(listed) == {*shipped(), "digits"} == set(models)
    faces = listed["faces"]
    assert faces["names"] == list(models["faces"].names)
    assert (faces["size"], faces["channels"], faces["labels"], faces["paper"]) == (64, 3, "attributes", "variational")
    assert set(faces["can"]) == {
        "classify", "generate", "reconstruct", "edit", "interpolate", "encode", "turn", "fit",
    }  # fmt: skip
    assert len(faces["capsules"]) > 2 * len(faces["names"])
    assert (listed["digits"]["size"], listed["digits"]["channels"], listed["digits"]["labels"]) == (8, 1, "classes")


def test_health_needs_nothing(client: Any) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_classify_gives_the_presences_of_the_api(client: Any, models: Models, face: bytes) -> None:
    found = client.post("/v1/models/faces/classify", files={"picture": face}).json()
    wanted = models["faces"].classify(opened(face))
    assert found["label"] == wanted.label[0]
    assert list(found["presence"]) == list(wanted.names)
    assert list(found["presence"].values()) == pytest.approx(wanted.presence[0].tolist(), abs=1e-5)
    assert wanted.unknown is not None
    assert found["unknown"] == pytest.approx(float(wanted.unknown[0]), abs=1e-5)
    assert found["presence"]["Hat"] < 0.1


def test_both_ways_to_send_a_picture_are_one(client: Any, a: Path) -> None:
    url, data = "/v1/models/digits/classify", a.read_bytes()
    upload = client.post(url, files={"picture": data}).json()
    assert client.post(url, json={"picture": text(data)}).json() == upload
    assert client.post(url, json={"picture": f"data:image/png;base64,{text(data)}"}).json() == upload


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_other_formats_are_read(client: Any, models: Models, face: bytes, kind: str) -> None:
    data = encoded(opened(face), kind, quality=95)
    found = client.post("/v1/models/faces/classify", files={"picture": data}).json()
    assert found["label"] == models["faces"].classify(opened(data)).label[0]


def test_a_picture_of_another_size_is_brought_to_the_models(client: Any, models: Models, face: bytes) -> None:
    large = opened(face).resize((200, 150))
    found = client.post("/v1/models/faces/reconstruct", files={"picture": encoded(large)}).json()
    same(found, models["faces"].reconstruct(large))


@pytest.mark.parametrize("sample", [False, True])
def test_reconstruct_paints_what_the_api_paints(client: Any, models: Models, a: Path, sample: bool) -> None:
    asked = {"picture": text(a.read_bytes()), "sample": sample, "seed": 3}
    found = client.post("/v1/models/digits/reconstruct", json=asked).json()
    same(found, models["digits"].reconstruct(a, sample=sample, seed=3))


def test_generate_paints_classes(client: Any, models: Models) -> None:
    found = client.post("/v1/models/digits/generate", json={"classes": ["3", 8], "n": 2, "seed": 4}).json()
    assert found["labels"] == ["3", "8"]
    same(found, models["digits"].generate(["3", 8], n=2, seed=4))
    every = client.post("/v1/models/digits/generate", json={"n": 1}).json()
    same(every, models["digits"].generate(n=1))


def test_generate_paints_attributes_and_likenesses(client: Any, models: Models, face: bytes) -> None:
    url, faces = "/v1/models/faces/generate", models["faces"]
    found = client.post(url, json={"attributes": {"Hat": 1, "smiling": False}, "n": 2, "seed": 4}).json()
    same(found, faces.generate(attributes={"Hat": 1, "Smiling": 0}, n=2, seed=4))
    like = client.post(url, files={"like": face}, data={"question": '{"n": 2, "seed": 9}'}).json()
    same(like, faces.generate(like=opened(face), n=2, seed=9))


@pytest.mark.parametrize(
    "options", [{}, {"styles": 2, "seed": 6}, {"intensity": [0.0, 0.5, 1.0]}, {"sample": True, "seed": 2, "styles": 1}]
)
def test_edit_paints_what_the_api_paints(client: Any, models: Models, face: bytes, options: dict[str, Any]) -> None:
    asked = {"picture": text(face), "wishes": {"Hat": 1}, **options}
    found = client.post("/v1/models/faces/edit", json=asked).json()
    same(found, models["faces"].edit(opened(face), "Hat=1", **options))


def test_an_edit_puts_on_a_hat_that_classify_then_sees(client: Any, face: bytes) -> None:
    parts = {"files": {"picture": face}, "data": {"question": '{"wishes": "Hat=1"}'}}
    hat = client.post("/v1/models/faces/edit", **parts, headers={"accept": "image/png"})
    assert hat.headers["content-type"] == "image/png"
    assert opened(hat.content).size == (64, 64)
    seen = client.post("/v1/models/faces/classify", files={"picture": hat.content}).json()
    assert seen["presence"]["Hat"] > 0.9


def test_a_digit_is_edited_into_another_class(client: Any, models: Models, a: Path) -> None:
    found = client.post("/v1/models/digits/edit", json={"picture": text(a.read_bytes()), "wishes": 7}).json()
    same(found, models["digits"].edit(a, 7))


def test_interpolate_walks_as_the_api_does(client: Any, models: Models, a: Path, b: Path, face: bytes) -> None:
    files = {"start": a.read_bytes(), "end": b.read_bytes()}
    url = "/v1/models/digits/interpolate"
    found = client.post(url, files=files, data={"question": '{"steps": 5}'}).json()
    same(found, models["digits"].interpolate(a, b, steps=5))
    faces = models["faces"]
    other = encoded(faces.generate(attributes="Hat=1", n=1, seed=8).sheet())
    asked = {"start": text(face), "end": text(other), "only": ["Hat"], "steps": 3}
    walk = client.post("/v1/models/faces/interpolate", json=asked).json()
    same(walk, faces.interpolate(opened(face), opened(other), only=["Hat"], steps=3))


def test_same_seed_same_bytes_and_another_seed_others(client: Any) -> None:
    def paint(seed: int) -> bytes:
        asked = {"classes": ["2"], "n": 3, "seed": seed}
        return client.post("/v1/models/digits/generate", json=asked, headers={"accept": "image/png"}).content

    assert paint(1) == paint(1)
    assert paint(1) != paint(2)


def test_a_sheet_is_the_grid_of_the_api(client: Any, models: Models) -> None:
    asked = {"classes": ["2", "5"], "n": 3, "seed": 1}
    sheet = client.post("/v1/models/digits/generate", json=asked, headers={"accept": "image/*"}).content
    wanted = np.asarray(models["digits"].generate(["2", "5"], n=3, seed=1).grid()).astype(int)
    assert np.abs(pixels(sheet) - wanted).max() <= 1


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", "application/json"),
        ("image/png, application/json;q=0.5", "image/png"),
        ("image/png;q=0.1, */*;q=0.9", "application/json"),
        ("application/json;q=0, */*", "image/png"),
    ],
)
def test_the_form_of_an_answer_is_what_is_accepted(client: Any, accept: str, given: str) -> None:
    asked = {"classes": ["2"], "n": 1}
    answer = client.post("/v1/models/digits/generate", json=asked, headers={"accept": accept})
    assert answer.headers["content-type"] == given


def test_a_form_that_is_not_offered_is_refused(client: Any, a: Path) -> None:
    html, picture = {"accept": "text/html"}, {"accept": "image/png"}
    complaint(client.post("/v1/models/digits/generate", json={}, headers=html), 406, "Accept", "image/png")
    seen = client.post("/v1/models/digits/classify", files={"picture": a.read_bytes()}, headers=picture)
    complaint(seen, 406, "Accept", "application/json")


def test_metrics_count_requests_and_batches(client: Any, a: Path) -> None:
    client.post("/v1/models/digits/classify", files={"picture": a.read_bytes()})
    client.get("/no/such/page")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    route = 'gencaps_requests_total{method="POST",route="/v1/models/{id}/classify",status="200"}'
    assert any(line.startswith(route) and float(line.split()[-1]) >= 1 for line in lines)
    assert any(line.startswith('gencaps_batch_calls_count{model="digits",work="classify"}') for line in lines)
    assert "/no/such/page" not in answer.text
    assert "gencaps_requests_inside 0.0" in lines


def test_documentation_has_an_example_for_every_question_that_works(client: Any) -> None:
    schema = client.get("/openapi.json").json()
    asked_of = {"generate": "fashion_mnist", "turn": "digits"}
    posts = [path for path, methods in schema["paths"].items() if "post" in methods]
    assert len(posts) == 13
    for path in posts:
        name = path.rsplit("/", 1)[-1]
        example = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
        answer = client.post(path.replace("{id}", asked_of.get(name, "faces")), json=example)
        if name in ("explain", "move", "walk", "explore", "score"):
            complaint(answer, 422, "id", "it can classify")
        else:
            assert answer.status_code == 200, answer.text
