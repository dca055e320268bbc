"""Measures of two GANs on models whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gencaps import data
from gencaps.data.images import ImageSet, Splits
from gencaps.engine import recorded
from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run
from gencaps.engine.train import Trained
from gencaps.model import PictureInfo, Pictures
from gencaps.primitives.noise import Noise
from gencaps.reproduce.measures import battle, cost, routing, spreading
from gencaps.reproduce.subject import Measured, Subject
from tests.engine.test_recorded import Stand
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


@pytest.fixture
def game(digits: Splits) -> Any:
    """A CapsuleGAN for pictures of 8 pixels' digits at 10, before any training."""

    def make(over: str) -> Subject:
        splits = data.load("digits", size=10, valid=0.0)
        small = {"width": 2, "discriminator": 2, "latent": 2, "capsules": 2, "primary_dim": 4, "dim": 3, "over": over}
        recipe = make_recipe("capsule_gan", overrides={"model": small, "train": {"size": 10}})
        torch.manual_seed(0)
        return look(build("capsule_gan", recipe.model, PictureInfo.of(splits.train)).eval(), splits, smoke=True)

    return make


def test_literal_routing_to_one_capsule_changes_no_verdict(game: Any) -> None:
    assert routing.routing(game("outputs")).values == {
        "share": 1.0, "score_change": 0.0, "verdicts_changed_percent": 0.0,
    }  # fmt: skip


def test_routing_over_inputs_is_set_beside_the_plain_mean_of_votes(game: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = game("inputs")
    monkeypatch.setattr(routing, "THRESHOLD", 0.0)  # all are called real either way
    values = routing.routing(subject).values
    assert values["verdicts_changed_percent"] == 0
    assert values["score_change"] > 1e-4
    assert 0.1 < values["share"] < 0.999
    # with one vote for everything only that one counts: its cosine with the outcome is 1, the others' -1
    network = subject.model.discriminator
    network.routed.iterations = 60
    assert routing.routing(subject).values["share"] < values["share"]
    network.routed.iterations = 1
    assert routing.routing(subject).values["share"] == pytest.approx(1)
    assert routing.routing(subject).values["score_change"] == 0


def test_only_a_capsule_network_routes(digits: Splits) -> None:
    refused(lambda: routing.routing(look(Player(digits.train, 0.9, 0.5), digits)), "stub", "no capsule network")


def test_a_recorded_step_is_timed_where_the_recipe_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "record", Stand)
    monkeypatch.setattr(recorded, "warm_up", lambda work: work())
    monkeypatch.setattr(cost, "can_record", lambda fabric: True)
    monkeypatch.setattr(Stand, "made", 0)
    small = {"model": {"width": 2, "discriminator": 2, "latent": 2}, "train": {"batch": 8, "size": 10, "record": True}}
    splits = data.load("digits", size=10, valid=0.0)
    stub = Stub(splits.train)
    trained = Trained(Run(look(stub, splits).run.path, make_recipe("gan", overrides=small)), stub, splits)
    step = cost.stepper(trained, 8)
    for players in (("discriminator",), ("discriminator", "generator")) * 2:
        step(players)
    assert Stand.made == 3  # one for the turn, two for the whole step, each once


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
