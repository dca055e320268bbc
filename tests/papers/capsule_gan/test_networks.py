"""Laws of the capsule networks of CapsuleGAN, and of routing to one output capsule."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe
from gencaps.model import PictureInfo, count_parameters
from gencaps.papers.capsule_gan.networks import CapsuleNetwork
from gencaps.primitives.routing import route, route_with_coefficients
from gencaps.primitives.squash import squash
from tests.game import Match
from tests.helpers import refused
from tests.papers.capsule_gan.helpers import make, pictures


def network(outputs: int = 1, over: Any = "outputs", rounds: int = 3, **more: Any) -> CapsuleNetwork:
    torch.manual_seed(0)
    return CapsuleNetwork(1, 20, 4, 2, 4, outputs, 3, rounds, over, "cosine", **more).double()


def x(n: int = 4) -> torch.Tensor:
    return 2 * pictures(n).double() - 1


@pytest.mark.parametrize("agreement", ["dot", "cosine"])
def test_literal_routing_to_one_capsule_gives_every_vote_the_weight_one(agreement: Any) -> None:
    torch.manual_seed(0)
    u, weight = torch.randn(4, 6, 3), torch.randn(1, 6, 5, 3)
    for rounds in (1, 2, 3, 7):
        routed = route_with_coefficients(u, weight, rounds, agreement=agreement, over="outputs")
        assert torch.equal(routed.coefficients, torch.ones(4, 1, 6))
        assert torch.equal(routed.v, route(u, weight, 1, agreement=agreement, over="outputs"))


def test_literal_routing_to_one_capsule_is_the_squashed_plain_sum_of_votes() -> None:
    discriminator = network(rounds=3)
    u = discriminator.primary(discriminator.body(x()))
    # the capsules reach routing as float32; from there on all is float64
    votes = torch.einsum("iod,bid->bio", discriminator.routed.weight[0], u.float().double())
    torch.testing.assert_close(discriminator(x())[:, 0], squash(votes.sum(1)), atol=1e-14, rtol=1e-12)


def test_rounds_change_nothing_over_one_output_and_something_over_the_inputs() -> None:
    assert torch.equal(network(rounds=1)(x()), network(rounds=5)(x()))
    one, five = (network(over="inputs", rounds=rounds)(x()) for rounds in (1, 5))
    assert (one - five).abs().max() > 1e-3
    # with several outputs the literal reading decides something, too
    one, five = (network(3, rounds=rounds)(x()) for rounds in (1, 5))
    assert (one - five).abs().max() > 1e-3


@pytest.mark.parametrize(("over", "axis"), [("inputs", 2), ("outputs", 1)])
def test_coefficients_sum_to_one(over: Any, axis: int) -> None:
    discriminator = network(2, over)
    u = discriminator.primary(discriminator.body(x()))
    c = route_with_coefficients(u, discriminator.routed.weight, 3, agreement="cosine", over=over).coefficients
    torch.testing.assert_close(c.sum(axis), torch.ones_like(c.sum(axis)))
    assert c.std() > 1e-3  # and they differ


def test_over_inputs_the_votes_that_agree_weigh_more() -> None:
    # three votes (1, 0), (1, 0), (-1, 0): the sum points to the first two
    u, weight = torch.tensor([[[1.0], [1.0], [-1.0]]]), torch.tensor([1.0, 0.0]).expand(1, 3, 2)[..., None]
    c = route_with_coefficients(u, weight, 2, agreement="cosine", over="inputs").coefficients[0, 0]
    # after one round b = cos = (1, 1, -1): c = e / (2 e + 1/e) twice, and 1/e / (2 e + 1/e)
    e = torch.tensor(1.0).exp()
    torch.testing.assert_close(c, torch.stack([e, e, 1 / e]) / (2 * e + 1 / e))


def test_gradients_reach_every_weight_of_the_discriminator() -> None:
    for over in ("outputs", "inputs"):
        for told in (0, 5):
            discriminator = network(over=over, told=told, between=1).float()
            discriminator(x().float(), torch.randn(4, 5) if told else None).square().sum().backward()
            assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in discriminator.parameters())


def test_what_belongs_to_a_picture_scales_and_shifts_what_the_capsules_see() -> None:
    discriminator, told = network(told=5), torch.randn(4, 5).double()
    seen: list[torch.Tensor] = []
    discriminator.primary.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    discriminator(x(), told)
    assert discriminator.told is not None
    scale, shift = discriminator.told(told)[..., None, None].chunk(2, 1)
    torch.testing.assert_close(seen[0], discriminator.body(x()) * (1 + scale) + shift)
    other = discriminator(x(), told.flip(0))
    assert not torch.allclose(other, discriminator(x(), told))


@pytest.mark.parametrize(("size", "capsules"), [(28, 98), (32, 32), (40, 50), (48, 72), (56, 98), (64, 32)])
def test_sizes_from_28_to_64_that_halve_give_capsules_at_4_to_7_places_a_side(size: int, capsules: int) -> None:
    model = make(channels=3, size=size).eval()
    assert model.discriminator.routed.weight.shape[1] == capsules  # two kinds
    assert model.score(pictures(2, 3, size)).shape == (2,)


@pytest.mark.parametrize(("size", "remedy"), [(8, "--train.size 28"), (30, "--train.size 32")])
def test_other_sizes_are_refused_with_one_that_works(size: int, remedy: str) -> None:
    for kind in ("plain", "conditional", "bigan"):
        refused(lambda kind=kind: make(kind, size=size), f"{size} px", remedy)


@pytest.mark.parametrize("preset", ["paper", "paper-inputs", "best"])
@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32), (3, 64)])
def test_capsule_discriminator_is_smaller_and_cheaper_than_its_rival(channels: int, size: int, preset: str) -> None:
    info, cost = PictureInfo(channels, size, tuple("0123456789")), {}
    for paper, name in (("gan", preset.removesuffix("-inputs")), ("capsule_gan", preset)):
        model: Any = build(paper, make_recipe(paper, preset=name).model, info).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model.score(pictures(1, channels, size))
        cost[paper] = (counter.get_total_flops(), count_parameters(model.discriminator.parameters()))
    assert cost["capsule_gan"][0] > 0
    assert cost["capsule_gan"][0] <= cost["gan"][0]
    assert cost["capsule_gan"][1] <= cost["gan"][1]


def test_spectral_norm_of_every_convolution_before_the_capsules_is_held_at_one() -> None:
    model = make(size=40, spectral=True, between=1)
    match = Match(model, learning_rate=1e-3)
    for seed in range(40):
        match.step(pictures(4, size=40), seed)
    layers = [m for m in model.eval().discriminator.body.modules() if isinstance(m, nn.Conv2d)]
    assert len(layers) == 4
    for layer in layers:
        assert torch.linalg.svdvals(layer.weight.detach().flatten(1))[0].item() == pytest.approx(1.0, abs=0.03)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in model.discriminator.modules())
    free = model.discriminator.primary.conv.weight.detach().flatten(1)
    assert abs(torch.linalg.svdvals(free)[0].item() - 1) > 0.03
