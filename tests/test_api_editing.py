"""The Python face of editing: attributes by name, styles, intensities, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from gencaps.api import Capsules, load
from gencaps.baselines.gan.config import GANConfig
from gencaps.baselines.gan.model import ConvGAN
from gencaps.cli import main
from gencaps.data import synthetic
from gencaps.engine.evaluate import pixels
from gencaps.model import PictureInfo
from gencaps.painted import Painted
from gencaps.primitives.noise import Noise, mix_seed
from tests.helpers import refused

TRAIN = ["--train.size", "32", "--train.epochs", "2", "--train.samples_every", "0"]
TINY = ["--model.widths", "[8,8]", "--model.strides", "[2,2]", "--model.decoder", "[32]", "--model.rest", "1"]


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Capsules:
    run = tmp_path_factory.mktemp("edit") / "faces"
    words = ["train", "variational", "--preset", "small", "--data", "faces:60", "--out", str(run)]
    assert main([*words, *TRAIN, *TINY, "--quiet", "--no-report", "--device", "cpu"]) == 0
    return load(run, "cpu")


@pytest.fixture(scope="module")
def x() -> Tensor:
    return pixels(synthetic.faces(3, 32, seed=9).x)


def wanted(faces: Capsules, n: int, **wishes: int) -> Tensor:
    states = torch.full((n, len(faces.names)), -1)
    for name, state in wishes.items():
        states[:, faces.names.index(name)] = state
    return states


def test_the_model_knows_its_attributes(faces: Capsules) -> None:
    assert faces.names == synthetic.NAMES
    assert "edit" in faces.can
    assert "8 attributes" in repr(faces)


def test_generate_paints_the_attributes_wished_and_the_others_as_they_mostly_are(faces: Capsules) -> None:
    made = faces.generate(attributes="Eyeglasses=1, smiling=off", n=3, seed=4)
    assert isinstance(made, Painted)
    assert made.pictures.shape == (3, 3, 32, 32)
    assert (made.columns, made.labels) == (3, ["Eyeglasses=1, Smiling=0"])
    y = faces.model.usual().clone()  # pyright: ignore[reportCallIssue]
    y[0, 0], y[0, 1] = 1, 0
    assert torch.equal(made.pictures, faces.model.generate(y.expand(3, -1), Noise(4)))  # pyright: ignore[reportCallIssue]
    assert torch.equal(made.pictures, faces.generate(attributes={"Eyeglasses": True, "Smiling": 0}, n=3, seed=4)[0])
    other = faces.generate(attributes="Eyeglasses=0,Smiling=0", n=3, seed=4)
    assert not torch.equal(made.pictures, other.pictures)


def test_generate_asked_for_nothing_paints_what_is_usual(faces: Capsules) -> None:
    made = faces.generate(n=2, seed=1)
    y = faces.model.usual()  # pyright: ignore[reportCallIssue]
    assert torch.equal(made.pictures, faces.model.generate(y.expand(2, -1), Noise(1)))  # pyright: ignore[reportCallIssue]
    assert (made.columns, made.labels) == (2, [""])


def test_generate_like_a_picture_takes_its_own_attributes(faces: Capsules, x: Tensor) -> None:
    made = faces.generate(like=x, n=2, seed=3)
    y = faces.model.classify(x).label  # pyright: ignore[reportCallIssue]
    assert made.pictures.shape == (6, 3, 32, 32)
    assert (made.columns, len(made.labels)) == (2, 3)
    assert torch.equal(made.pictures, faces.model.generate(y.repeat_interleave(2, 0), Noise(3)))  # pyright: ignore[reportCallIssue]
    changed = faces.generate(like=x, attributes="Hat=1", n=2, seed=3)
    y = y.clone()
    y[:, faces.names.index("Hat")] = 1
    assert torch.equal(changed.pictures, faces.model.generate(y.repeat_interleave(2, 0), Noise(3)))  # pyright: ignore[reportCallIssue]
    assert changed.labels == ["Hat=1"] * 3


def test_generate_like_a_digit_takes_its_class(model: Capsules, a: Path, b: Path) -> None:
    made = model.generate(like=[a, b], n=2, seed=3)
    assert made.labels == model.classify([a, b]).label
    assert torch.equal(made.pictures, model.generate(made.labels, n=2, seed=3).pictures)


def test_edit_paints_a_row_a_picture(faces: Capsules, x: Tensor) -> None:
    made = faces.edit(x, "Hat=1")
    assert (made.columns, len(made.labels)) == (1, 3)
    assert torch.equal(made.pictures, faces.model.edit(x, wanted(faces, 3, Hat=1)))  # pyright: ignore[reportCallIssue]
    assert torch.equal(made.pictures, faces.edit(x, {"hat": "on"}, seed=9).pictures)  # no style: nothing is random


def test_edit_paints_styles_of_each_picture_side_by_side(faces: Capsules, x: Tensor) -> None:
    made = faces.edit(x, "Hat=1", styles=4, seed=2)
    assert (made.columns, len(made.pictures)) == (4, 12)
    rows = made.pictures.unflatten(0, (3, 4))
    for row in rows:
        gaps = [(one - other).abs().max() for i, one in enumerate(row) for other in row[:i]]
        assert min(gaps) > 1e-6
    assert torch.equal(made.pictures, faces.edit(x, "Hat=1", styles=4, seed=2).pictures)
    assert not torch.equal(made.pictures, faces.edit(x, "Hat=1", styles=4, seed=3).pictures)


def test_intensities_of_one_style_are_one_line(faces: Capsules, x: Tensor) -> None:
    """Row by row: style 0 at each intensity, then style 1; the same style throughout."""
    made = faces.edit(x, "Hat=1", styles=2, intensity=[0.0, 0.5, 1.0], seed=2)
    assert made.columns == 6
    rows = made.pictures.unflatten(0, (3, 2, 3))
    again = faces.reconstruct(x).pictures
    full = faces.edit(x, "Hat=1", styles=2, seed=2).pictures.unflatten(0, (3, 2))
    half = faces.edit(x, "Hat=1", styles=2, intensity=0.5, seed=2).pictures.unflatten(0, (3, 2))
    for style in range(2):
        torch.testing.assert_close(rows[:, style, 0], again)
        torch.testing.assert_close(rows[:, style, 1], half[:, style])
        torch.testing.assert_close(rows[:, style, 2], full[:, style])
    assert (full - again[:, None]).abs().amax((1, 2, 3, 4)).max() > 1e-4


def test_sample_draws_what_is_kept(faces: Capsules, x: Tensor) -> None:
    plain, drawn = faces.edit(x, "Hat=1"), faces.edit(x, "Hat=1", sample=True, seed=1)
    assert not torch.equal(plain.pictures, drawn.pictures)
    assert torch.equal(drawn.pictures, faces.edit(x, "Hat=1", sample=True, seed=1).pictures)
    assert not torch.equal(drawn.pictures, faces.edit(x, "Hat=1", sample=True, seed=2).pictures)


def test_a_digit_becomes_another(model: Capsules, a: Path, b: Path) -> None:
    made = model.edit([a, b], "7", styles=3, seed=5)
    assert (made.columns, len(made.pictures)) == (3, 6)
    assert made.labels == model.classify([a, b]).label  # rows are named for what came in
    # nothing of a digit is kept but what no class stands for, and this model has none of that: it is a new 7
    style = Noise(mix_seed(5, "style"))
    assert torch.equal(made.pictures, model.model.generate(torch.full((6,), 7), style))  # pyright: ignore[reportCallIssue]
    same = model.classify(a).label[0]
    assert torch.equal(model.edit(a, same).pictures, model.reconstruct(a).pictures)


def test_resample_and_interpolate_take_names_of_attributes(faces: Capsules, x: Tensor) -> None:
    hat = (torch.arange(8) == faces.names.index("Hat"))[None]
    made = faces.resample(x, only="hat", n=2, seed=3)
    expected = faces.model.resample(x.repeat_interleave(2, 0), Noise(3), hat.expand(6, -1))  # pyright: ignore[reportCallIssue]
    assert torch.equal(made.pictures, expected)
    assert not torch.equal(made.pictures, faces.resample(x, n=2, seed=3).pictures)
    walk = faces.interpolate(x[:2], x[1:], only=["Hat"], steps=4)
    expected = faces.model.interpolate(x[:2], x[1:], 4, hat.expand(2, -1))  # pyright: ignore[reportCallIssue]
    assert torch.equal(walk.pictures, expected.flatten(0, 1))
    assert walk.columns == 4


def test_long_lists_of_attributes_are_cut_in_labels(faces: Capsules, x: Tensor) -> None:
    whole, short = faces.classify(x).label, faces.edit(x, "Hat=1").labels
    for full, cut in zip(whole, short, strict=True):
        names = full.split(", ")
        assert cut == (full if len(names) <= 3 else f"{', '.join(names[:3])}, +{len(names) - 3}")


def test_edits_that_make_no_sense_are_refused(faces: Capsules, x: Tensor) -> None:
    refused(lambda: faces.edit(x, "Hatt=1"), "'Hatt'", "did you mean 'Hat'?")
    refused(lambda: faces.edit(x, "Hat=1,Hat=0"), "Hat", "both on and off")
    refused(lambda: faces.edit(x, "Hat"), "Hat=1 or Hat=0")
    refused(lambda: faces.edit(x, {}), "nothing was asked for")
    refused(lambda: faces.edit(x, "Hat=1", styles=-1), "styles is -1")
    for intensity in (1.5, -0.1, float("nan"), [0.0, 2.0], []):
        refused(lambda i=intensity: faces.edit(x, "Hat=1", intensity=i), "intensity", "from 0 to 1")
    refused(lambda: faces.generate("Hat"), "attributes, no classes", "Eyeglasses=1")
    refused(lambda: faces.generate(attributes="Hat=1", n=0), "n is 0")
    refused(lambda: faces.resample(x, only="Hut"), "'Hut'", "did you mean 'Hat'?")
    refused(lambda: faces.interpolate(x, x, only=[]), "no attribute was named")


def test_a_model_of_classes_knows_no_attributes(model: Capsules, a: Path) -> None:
    refused(lambda: model.generate(attributes="Hat=1"), "classes, no attributes")
    refused(lambda: model.generate("7", like=a), "choose one")
    refused(lambda: model.edit(a, "Hat=1"), "'Hat=1'", "no attributes")
    refused(lambda: model.edit(a, "77"), "'77'", "did you mean '7'?")
    refused(lambda: model.resample(a, only="Hat"), "classes", "'Hat'")
    refused(lambda: model.interpolate(a, a, only="Hat"), "classes", "'Hat'")


def test_a_model_that_cannot_edit_says_so() -> None:
    gan = Capsules(ConvGAN(GANConfig(latent=4, width=4, discriminator=4), PictureInfo(1, 16, ("a", "b"))))
    refused(lambda: gan.edit(np.zeros((8, 8)), "a"), "gan", "cannot edit", "it can")
    refused(lambda: gan.generate(attributes="a=1"), "gan", "leave them out")
    refused(lambda: gan.generate(like=np.zeros((8, 8))), "gan", "leave them out")
