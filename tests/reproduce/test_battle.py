"""Measures of two GANs on models whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gencaps import data
from gencaps.data.images import ImageSet, Splits
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run
from gencaps.engine.train import Trained
from gencaps.model import Pictures
from gencaps.primitives.noise import Noise
from gencaps.reproduce.measures import battle, cost, spreading
from gencaps.reproduce.subject import Measured
from tests.helpers import refused
from tests.reproduce.test_measures import Stub, Tray, look


class Player(Stub):
    """Paints one grey, and calls real what is at least as bright as it likes."""

    def __init__(self, images: ImageSet, paints: float, likes: float) -> None:
        super().__init__(images)
        self.paints, self.likes = paints, likes

    def sample(self, n: int, noise: Noise) -> Pictures:
        grey = self.paints * torch.ones(n, 1, 8, 8)
        grey[: n // 4] = 0.0  # a quarter comes out black
        return grey

    def score(self, x: Pictures) -> Tensor:
        return (x.mean((1, 2, 3)) >= self.likes).float()


@pytest.fixture(scope="module")
def digits() -> Splits:
    return data.load("digits", valid=0.0)


def greys(splits: Splits, *bytes: int) -> Splits:
    x = torch.tensor(bytes, dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 8, 8).contiguous()
    test = replace(splits.test, x=x, y=torch.zeros(len(bytes), dtype=torch.long))
    return splits._replace(test=test)


def test_gam_sets_each_ones_samples_before_the_other_by_hand(digits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battle, "SAMPLES", 40)
    splits = greys(digits, 0, 60, 160, 255)
    capsule, gan = Player(digits.train, 0.9, 0.5), Player(digits.train, 0.4, 0.1)
    one, other = look(capsule, splits), look(gan, splits)
    values, (note,) = battle.gam(replace(one, trained=(*one.trained, *other.trained)))
    # the GAN calls fake only what is black: a quarter of CapsuleGAN's; CapsuleGAN calls all of the GAN's fake
    assert values["gan_on_capsule_samples"] == 0.25
    assert values["capsule_on_gan_samples"] == 1.0
    assert values["r_samples"] == 0.25
    # bytes 0, 60, 160, 255: real to the GAN are three, to CapsuleGAN two
    assert (values["gan_on_test"], values["capsule_on_test"]) == (0.75, 0.5)
    assert values["r_test"] == 1.5
    assert "verdict tie" in note
    refused(lambda: battle.scores(Tray(digits.train), splits.test.x), "stub", "does not score")


def test_paired_differences_are_ours_minus_theirs_over_every_n(digits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = look(Tray(digits.train), digits), look(Tray(digits.train), digits)
    errors = {id(ours.trained[0]): (0.30, 0.12, 0.05), id(theirs.trained[0]): (0.32, 0.11, 0.09)}

    def known(subject: object) -> Measured:
        (trained,) = subject.trained  # pyright: ignore[reportAttributeAccessIssue]
        return Measured({f"error-{n}": e for n, e in zip((100, 1000, 10000), errors[id(trained)], strict=True)})

    monkeypatch.setattr(spreading, "semi_supervised", known)
    found = spreading.semi_supervised_paired(replace(ours, trained=(*ours.trained, *theirs.trained))).values
    assert found == pytest.approx(
        {
            "difference-100": -0.02,
            "difference-1000": 0.01,
            "difference-10000": -0.04,
            "smallest_margin_points": -1.0,
            "largest_margin_points": 4.0,
        }
    )


def test_a_step_is_timed_for_the_players_named_and_trains_no_trained_model(digits: Splits) -> None:
    small = {"model": {"width": 2, "discriminator": 2, "latent": 2}, "train": {"batch": 8, "size": 10}}
    splits = data.load("digits", size=10, valid=0.0)
    stub = Stub(splits.train)
    trained = Trained(Run(look(stub, splits).run.path, make_recipe("gan", overrides=small)), stub, splits)
    asked: list[tuple[str, ...]] = []
    step = cost.stepper(trained, 8)

    def noted(players: tuple[str, ...]) -> None:
        asked.append(players)
        step(players)

    assert cost.clock(noted, ("discriminator",), 3, torch.device("cpu")) > 0
    assert asked == [("discriminator",)] * 3
    assert stub.weight.item() == 1
    # more batches than an epoch has
    batches = cost.forever(cost.Batches(splits.train, 500, seed=0, device=torch.device("cpu")))
    assert [len(next(batches)[0]) for _ in range(5)] == [500] * 5
