"""What the studio asks of the four systems, over HTTP as from Python."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

from gencaps.api import Capsules
from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe
from gencaps.figures import to_bytes
from gencaps.model import PictureInfo
from gencaps.service.app import make_app
from tests.service.helpers import HOST, complaint, pixels, text
from tests.service.test_answers import same

PAPERS = ("product_of_experts", "probabilistic", "capsule_gan")
Models = dict[str, Capsules]


@pytest.fixture(scope="module")
def untrained() -> Models:
    """One small model of each paper that ships none, as it is before training."""
    made = {}
    for paper in PAPERS:
        torch.manual_seed(0)
        size = 28 if paper == "capsule_gan" else 8
        info = PictureInfo(1, size, tuple("0123456789"), "classes", "digits")
        made[paper] = Capsules(build(paper, make_recipe(paper, preset="small", data="digits").model, info))
    return made


@pytest.fixture(scope="module")
def papers(untrained: Models) -> Iterator[Any]:
    with TestClient(make_app(untrained), base_url=HOST, raise_server_exceptions=False) as found:
        yield found


def ask(client: Any, id: str, act: str, **fields: Any) -> Any:
    answer = client.post(f"/v1/models/{id}/{act}", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_capsules_as_numbers_are_painted_as_the_picture_is(client: Any, models: Models, a: Path) -> None:
    digits = models["digits"]
    found = ask(client, "digits", "encode", picture=text(a.read_bytes()))
    values, on, presence = digits.dials(a)
    assert found["names"] == list(digits.names)
    assert np.allclose(found["capsules"], values[0], atol=1e-5)
    assert found["on"] == on[0].tolist()
    assert found["presence"] == pytest.approx(presence[0].tolist(), abs=1e-5)
    same({**ask(client, "digits", "turn", capsules=found["capsules"], on=found["on"]), "labels": [""]},
         digits.paint(values, on))  # fmt: skip


def test_capsules_of_another_shape_are_refused(client: Any) -> None:
    url = "/v1/models/digits/turn"
    complaint(client.post(url, json={"capsules": [[0.0] * 8] * 9, "on": [1.0] * 10}), 422, "capsules", "10 lists of 8")
    complaint(client.post(url, json={"capsules": [[0.0] * 8] * 10, "on": [1.0]}), 422, "on", "10 numbers")
    complaint(client.post(url, json={"capsules": [[1e9] * 8] * 10, "on": [1.0] * 10}), 422, "capsules.0")
    assert client.post(url, content='{"capsules": [[NaN]], "on": [1]}').status_code in (400, 415)


def test_fit_gives_the_picture_that_the_model_sees(client: Any, models: Models, face: bytes) -> None:
    found = ask(client, "digits", "fit", picture=text(face))
    wanted = to_bytes(models["digits"].pictures(Image.open(io.BytesIO(face))))[0, ..., 0]
    assert np.array_equal(pixels(found["pictures"][0]), wanted)


def test_a_walk_is_given_as_a_gif_where_asked(client: Any, a: Path, b: Path) -> None:
    files = {"start": a.read_bytes(), "end": b.read_bytes()}
    question = {"question": '{"steps": 5}'}
    url = "/v1/models/digits/interpolate"
    answer = client.post(url, files=files, data=question, headers={"accept": "image/gif"})
    assert answer.headers["content-type"] == "image/gif"
    moving: Any = Image.open(io.BytesIO(answer.content))
    assert (moving.format, moving.n_frames) == ("GIF", 5)
    still = client.post("/v1/models/digits/generate", json={}, headers={"accept": "image/gif"})
    complaint(still, 406, "Accept")


def test_experts_draw_one_by_one_and_are_explored(papers: Any, untrained: Models) -> None:
    experts = untrained["product_of_experts"]
    info = {one["id"]: one for one in papers.get("/v1/models").json()["models"]}["product_of_experts"]
    inner: Any = experts.model
    assert info["experts"] == inner.experts == len(info["capsules"])
    asked = {"capsules": [1, 3], "domain": "full", "n": 2, "seed": 4}
    found = ask(papers, "product_of_experts", "generate", **asked)
    same(found, experts.generate(capsule=[1, 3], domain="full", n=2, seed=4))
    same(ask(papers, "product_of_experts", "explore", capsule=2, steps=3), experts.explore(2, steps=3))
    wrong = papers.post("/v1/models/product_of_experts/generate", json={"capsules": [99]})
    complaint(wrong, 422, "capsules", "99", "capsules 0 to")
    many = papers.post("/v1/models/product_of_experts/generate", json={"domain": "full", "n": 64})
    complaint(many, 422, "n", "256")


def test_a_scene_is_explained_and_its_objects_move(papers: Any, untrained: Models, a: Path) -> None:
    scene, picture = untrained["probabilistic"], text(a.read_bytes())
    found, inner = ask(papers, "probabilistic", "explain", picture=picture), scene.model
    wanted: Any = inner.explain(scene.pictures(a))  # pyright: ignore[reportCallIssue]
    assert found["presence"] == pytest.approx(wanted.presence[0].tolist(), abs=1e-5)
    assert np.allclose(found["objects"], wanted.objects[0].detach(), atol=6e-4)
    assert len(found["pictures"]) == 4
    shown = pixels(found["pictures"][3])
    assert np.abs(shown - to_bytes(scene.explain(a).pictures)[3]).max() <= 1
    moved = ask(papers, "probabilistic", "move", picture=picture, object=2, right=0.5, down=-0.25)
    same(moved, scene.move(a, 2, right=0.5, down=-0.25))
    wrong = papers.post("/v1/models/probabilistic/move", json={"picture": picture, "object": 400})
    complaint(wrong, 422, "object", "400", "objects 0 to")


def test_a_gan_walks_and_says_what_looks_real(papers: Any, untrained: Models) -> None:
    gan = untrained["capsule_gan"]
    same(ask(papers, "capsule_gan", "walk", n=2, steps=3, seed=5), gan.walk(2, steps=3, seed=5))
    painted = ask(papers, "capsule_gan", "generate", n=1, seed=1)["pictures"][0]
    found = ask(papers, "capsule_gan", "score", picture=painted)["score"]
    assert found == pytest.approx(float(gan.score(Image.fromarray(pixels(painted).astype(np.uint8)))[0]), abs=1e-4)


def test_examples_are_of_the_test_set_where_it_is_here(
    client: Any, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = client.get("/v1/models/digits/examples").json()
    assert "test set of digits" in digits["source"]
    assert digits["labels"][:12] == [*"0123456789", "0", "1"]
    seen = [ask(client, "digits", "classify", picture=one)["label"] for one in digits["pictures"]]
    assert np.mean([a == b for a, b in zip(seen, digits["labels"], strict=True)]) > 0.8
    faces = client.get("/v1/models/faces/examples").json()
    assert pixels(faces["pictures"][0]).shape == (64, 64, 3)
    assert any("Hat" in label for label in faces["labels"])
    complaint(client.get("/v1/models/nothing/examples"), 404, "id")


def test_examples_are_painted_where_there_is_no_test_set(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    from gencaps.service import examples

    monkeypatch.setattr(examples, "locate", lambda name: None)
    # by the model of that set that comes along, as digits are of MNIST and not the small ones that are built in
    found = examples.examples(models["mnist_scene"])
    assert found.source == "painted by the model mnist"
    assert found.labels[:12] == [*"0123456789", "0", "1"]
    assert len(found.pictures) == len(found.labels) == examples.COUNT
    assert pixels(found.pictures[0])[:2].max() < 30  # MNIST's digits have a margin
    monkeypatch.setattr(examples, "shipped", dict)
    found = examples.examples(models["fashion_mnist"])
    assert found.source == "painted by the model"
    assert found.labels[:10] == list(models["fashion_mnist"].names)


def test_examples_are_black_where_there_is_neither(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    from gencaps.service import examples

    monkeypatch.setattr(examples, "locate", lambda name: None)
    monkeypatch.setattr(examples, "shipped", dict)
    mute = Capsules(models["fashion_mnist"].model)
    mute.can = ("classify", "reconstruct")
    found = examples.examples(mute)
    assert [pixels(one).max() for one in found.pictures] == [0]
