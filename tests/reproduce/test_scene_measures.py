"""What is measured of scenes, on models whose answers are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from gencaps.data.images import ImageSet, Splits
from gencaps.engine.evaluate import pixels
from gencaps.model import Losses, Step
from gencaps.reproduce.measures import scenes
from tests.papers.probabilistic.helpers import tiny
from tests.reproduce.test_measures import Stub, look


def four(n: int) -> ImageSet:
    """Pictures whose first pixel is their class, one of four."""
    y = torch.arange(n) % 4
    x = torch.zeros(n, 1, 8, 8, dtype=torch.uint8)
    x[:, 0, 0, 0] = y.to(torch.uint8)
    return ImageSet("four", x, y, tuple("abcd"))


class Known(Stub):
    """Sees the class in all pictures but those of class 3, which it takes for class 2 until it refines."""

    def __init__(self, images: ImageSet) -> None:
        super().__init__(images)
        self.config = SimpleNamespace(capsules=(4, 2))
        self.mends = 1

    def seen(self, x: Tensor, right: bool) -> Any:
        label = (255 * x[:, 0, 0, 0]).round().long()
        wrong = torch.where((label == 3) & (torch.arange(len(x)) % 8 == 3), 2, label)
        logit = 20.0 * torch.nn.functional.one_hot(label if right else wrong, 4) - 10.0
        return SimpleNamespace(objects=SimpleNamespace(presence_logit=logit))

    def encode(self, x: Tensor) -> Any:
        return self.seen(x, right=False)

    def refine(self, x: Tensor, steps: int, layers: int | None = None) -> Any:
        return self.seen(x, right=layers in (None, self.mends))

    def reconstruct(self, x: Tensor, refine: int = 0) -> Tensor:
        return x + (0.0 if refine else 0.5)

    def losses(self, x: Tensor, y: Tensor, step: Step) -> Losses:
        raise NotImplementedError


def test_refines_gain_is_in_points_and_over_the_whole_test_part() -> None:
    train = four(400)
    # every second picture of class 3 is misread: an eighth of all
    found = scenes.refine(look(Known(train), Splits(train, four(0), four(160)))).values
    assert found["gain_points"] == pytest.approx(12.5)
    assert found["refitted_gain_points"] == pytest.approx(12.5)
    assert (found["before"], found["after"]) == (pytest.approx(0.875), 1.0)
    assert found["rotated_mse"] == 0.0
    assert found["rotated_mse_encoder"] == pytest.approx(0.25)


def test_what_refining_objects_adds_is_told_of_every_angle_and_parts_stand_still() -> None:
    train = four(400)
    model = Known(train)
    subject = look(model, Splits(train, four(0), four(160)))
    found = scenes.refine_objects(subject).values
    # the first pixel is turned away but at 0 degrees: there nothing is left to read
    assert (found["before-rotated-0"], found["after-rotated-0"]) == (pytest.approx(0.875), 1.0)
    assert found["gain-rotated-0"] == pytest.approx(12.5)
    assert {name.partition("-")[2] for name in found} == {f"rotated-{angle}" for angle in (0, 45, 90, 135, 180)}
    model.mends = 2
    assert scenes.refine_objects(subject).values["gain-rotated-0"] == 0.0


def test_specialisation_counts_objects_and_their_purity() -> None:
    train = four(400)
    found = scenes.specialisation(look(Known(train), Splits(train, four(0), four(160)))).values
    assert found == {"parents_in_use": 4.0, "purity": pytest.approx(0.875)}


@pytest.mark.parametrize(
    "settings", [{}, *({"top": top, "objects": "one", "joint_balance": 50.0} for top in ("votes", "set"))]
)
def test_the_bound_leaves_out_what_only_teaches(settings: dict[str, Any]) -> None:
    model, test = tiny(size=8, poses="gaussian", **settings), four(12)
    subject = look(model, Splits(test, four(0), test))
    with torch.no_grad():
        losses = model.losses(pixels(test.x), test.y, Step(subject.noise("bound"), stage="full"))
    weighed = 50.0 * losses.terms["uneven"] if settings else 0.0
    taught = sum(losses.terms.get(name, torch.zeros(())) for name in ("guess", "place"))
    wanted = float(weighed + taught - losses.total)
    assert scenes.bound(subject).values["nats"] == pytest.approx(wanted, rel=1e-4)
