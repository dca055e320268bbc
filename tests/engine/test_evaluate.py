"""Looking at a model over a set: the figures against a loop over single pictures."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gencaps.abilities import Classified
from gencaps.data.images import ImageSet
from gencaps.engine.evaluate import Evaluation, evaluate, pixels
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step
from gencaps.primitives.noise import Noise

NAMES = ("dark", "middle", "bright")


class Trainable(CapsuleModel):
    """Can be trained, so to speak, and nothing else; notes the mode that it is asked in."""

    paper = "stub"

    def __init__(self) -> None:
        super().__init__(None, PictureInfo(1, 8, NAMES))
        self.gain = nn.Parameter(torch.tensor(0.5))
        self.modes: set[bool] = set()

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError


class Brightness(Trainable):
    """Tells how bright the left column of a picture is, and paints everything half as bright."""

    def classify(self, x: Pictures) -> Classified:
        self.modes.add(self.training)
        light = x[..., 0].mean((1, 2))
        presence = 1 - (light[:, None] - torch.tensor([0.0, 0.5, 1.0])).abs()
        return Classified(presence, presence.argmax(1))

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        self.modes.add(self.training)
        assert noise is None
        return self.gain * x


class Spots(Trainable):
    """Tells of each of three pixels whether it is lit."""

    def classify(self, x: Pictures) -> Classified:
        presence = x[:, 0, 0, :3]
        return Classified(presence, (presence > 0.5).long())


def some(n: int = 23) -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (n, 1, 8, 8), dtype=torch.uint8, generator=generator)
    x[: n // 3] //= 4
    y = torch.randint(0, 3, (n,), generator=generator)
    return ImageSet("noise", x, y, NAMES)


def test_figures_are_those_of_a_loop_over_single_pictures() -> None:
    images, model = some(), Brightness()
    right, squared, table = 0, 0.0, [[0] * 3 for _ in NAMES]
    for x, y in zip(images.x.tolist(), images.y.tolist(), strict=True):
        light = sum(row[0] / 255 for row in x[0]) / 8
        told = min(range(3), key=lambda k: abs(light - k / 2))
        right += told == y
        table[y][told] += 1
        squared += sum((0.5 * value / 255) ** 2 for row in x[0] for value in row)
    seen = evaluate(model, images)
    assert 0 < right < 23
    assert (seen.images, seen.correct, seen.accuracy) == (23, right, right / 23)
    assert seen.error_percent == pytest.approx(100 * (23 - right) / 23)
    assert seen.confusion is not None
    assert seen.confusion.tolist() == table
    assert seen.mse == pytest.approx(squared / (23 * 64), rel=1e-5)
    assert seen.seconds > 0


@pytest.mark.parametrize("batch", [1, 7, 23, 500])
def test_the_batch_size_does_not_matter(batch: int) -> None:
    images, model = some(), Brightness()
    whole, parts = evaluate(model, images, 23), evaluate(model, images, batch)
    for name in ("images", "accuracy", "correct", "error_percent"):
        assert getattr(parts, name) == getattr(whole, name)
    assert parts.mse == pytest.approx(whole.mse, rel=1e-5)
    for name in ("confusion", "predicted", "presence"):
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name))


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_asked_in_eval_mode_and_put_back(training: bool) -> None:
    model = Brightness().train(training)
    seen = evaluate(model, some())
    assert model.modes == {False}
    assert model.training is training
    assert seen.presence is not None
    assert not seen.presence.requires_grad


def test_answers_stand_in_the_order_of_the_set() -> None:
    images, model = some(), Brightness()
    seen, direct = evaluate(model, images, 5), model.classify(pixels(images.x))
    assert seen.predicted is not None
    assert seen.presence is not None
    assert torch.equal(seen.predicted, direct.label)
    torch.testing.assert_close(seen.presence, direct.presence)


def test_attributes_are_averaged_over_their_shares() -> None:
    x = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    x[:, 0, 0, 0] = 255  # the first spot is always lit, the others never
    y = torch.tensor([[1, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=torch.uint8)
    seen = evaluate(Spots(), ImageSet("spots", x, y, NAMES, "attributes"))
    assert seen.accuracy == pytest.approx((3 / 4 + 3 / 4 + 1) / 3)
    assert seen.error_percent == pytest.approx(100 / 6)
    assert seen.correct is None
    assert seen.confusion is None
    assert seen.mse is None


def test_what_a_model_cannot_do_is_left_out() -> None:
    seen = evaluate(Trainable(), some())
    assert seen.images == 23
    assert [part for part in seen[2:] if part is not None] == []


def test_an_empty_part_is_refused_on_one_line() -> None:
    with pytest.raises(GencapsError, match=r"^'noise' has no pictures in the part asked for: .*$"):
        evaluate(Brightness(), some()[:0])


@pytest.mark.parametrize("model", [Brightness(), Trainable()])
def test_figures_are_plain_numbers_for_json(model: CapsuleModel) -> None:
    seen = evaluate(model, some())
    figures: dict[str, Any] = json.loads(json.dumps(seen.figures(), allow_nan=False))
    assert figures == seen.figures()
    assert set(figures) == {"accuracy", "error_percent", "correct", "images", "mse", "seconds"}
    assert {type(value) for value in figures.values()} <= {float, int, type(None)}


def test_figures_carry_their_own_names() -> None:
    """Fields are passed by position: two that changed places would go unseen elsewhere."""
    seen = Evaluation(1, 2.0, 3.0, 4.0, 5, 6.0, None, None, None)
    assert seen.figures() == {
        "images": 1,
        "seconds": 2.0,
        "accuracy": 3.0,
        "error_percent": 4.0,
        "correct": 5,
        "mse": 6.0,
    }


def test_bytes_become_numbers_from_0_to_1_and_stay_as_they_were() -> None:
    x: Tensor = torch.tensor([[0, 51, 255]], dtype=torch.uint8)
    assert pixels(x).tolist() == [[0.0, pytest.approx(0.2), 1.0]]
    assert x.tolist() == [[0, 51, 255]]
