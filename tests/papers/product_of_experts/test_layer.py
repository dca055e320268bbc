"""Routing up, mixing, and Algorithm 1 (Hauser, 2020)."""

from __future__ import annotations

import pytest
import torch

from gencaps.papers.product_of_experts.layer import contrast, down, mix, up
from gencaps.primitives.squash import length, squash, unsquash
from tests.papers.product_of_experts.helpers import algorithm_1, layer, normal


@pytest.mark.parametrize("steps", [1, 3])
def test_descending_the_contrast_is_algorithm_1(steps: int) -> None:
    made, x = layer()
    c = made.encode(x).coefficients.detach()
    with torch.no_grad():
        model = mix(x, made.weight, c, steps)
    data, negative = contrast(up(x, made.weight, c), model, made.weight, c)
    (found,) = torch.autograd.grad((data - negative).mean(), made.weight)
    wanted = algorithm_1(x, made.weight.detach(), steps)
    assert wanted.abs().max() > 1e-3
    torch.testing.assert_close(-found, wanted, rtol=1e-9, atol=1e-13)


def test_up_and_down_are_the_weighted_sums_written_out() -> None:
    made, x = layer()
    c = made.encode(x).coefficients
    torch.testing.assert_close(up(x, made.weight, c), torch.einsum("bji,jiod,bid->bjo", c, made.weight, x))
    above = normal(5, 4, 3, seed=2)
    torch.testing.assert_close(down(above, made.weight, c), torch.einsum("bji,jiod,bjo->bid", c, made.weight, above))


def test_coefficients_sum_to_one_over_the_inputs() -> None:
    made, x = layer()
    routed, back = made.encode(x), made.route_back(made.encode(x).v)
    assert routed.coefficients.shape == (5, 4, 6)
    torch.testing.assert_close(routed.coefficients.sum(2), torch.ones(5, 4, dtype=torch.float64))
    assert routed.coefficients.std() > 1e-3
    assert back.coefficients.shape == (5, 6, 4)  # e_ji over the capsules j above
    torch.testing.assert_close(back.coefficients.sum(2), torch.ones(5, 6, dtype=torch.float64))


def test_encoded_capsules_are_the_squashed_sums() -> None:
    made, x = layer()
    v, c = made.encode(x)
    torch.testing.assert_close(v, squash(up(x, made.weight, c)))


def test_one_step_lowers_the_contrast_with_c_and_the_model_held_fixed() -> None:
    made, x = layer()
    with torch.no_grad():
        c = made.encode(x).coefficients
        model = mix(x, made.weight, c)
    ours, theirs = contrast(up(x, made.weight, c), model, made.weight, c)
    before = (ours - theirs).mean()
    (slope,) = torch.autograd.grad(before, made.weight)
    with torch.no_grad():
        made.weight.sub_(0.1 * slope)
        ours, theirs = contrast(up(x, made.weight, c), model, made.weight, c)
        after = (ours - theirs).mean()
    assert after < before - 0.05 * slope.square().sum()


def test_mixing_leaves_the_capsules_below_squashed() -> None:
    made, x = layer()
    c = made.encode(x).coefficients
    assert (length(mix(x, made.weight, c, 2)) < 1).all()


def test_sampled_firing_is_all_or_nothing_and_its_mean_is_the_length() -> None:
    made, x = layer()
    x = x[:1].expand(4000, -1, -1)
    c = made.encode(x).coefficients
    v = squash(up(x, made.weight, c))
    # squash bends, so means are compared where it is nearly straight: before it
    uniform = torch.rand(1, 4000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fired = (uniform[0] < length(v)).double()
    torch.testing.assert_close(fired.mean(0), length(v)[0], atol=0.03, rtol=0)
    whole = mix(x, made.weight, c, 1, torch.zeros_like(uniform))  # 0 is below any length: all fire
    by_hand = squash(down(v / length(v).unsqueeze(-1), made.weight, c))
    torch.testing.assert_close(whole, by_hand)
    none = mix(x, made.weight, c, 1, torch.ones_like(uniform))
    assert (none == 0).all()


def test_the_mean_direction_is_followed() -> None:
    made, x = layer()
    v = made.encode(x).v.detach()
    made.follow(v)
    made.follow(v)
    torch.testing.assert_close(made.mean_direction, 2 * (v / length(v).unsqueeze(-1)).sum(0))


def test_the_way_back_is_the_weighted_sum_squashed() -> None:
    made, x = layer()
    v = made.encode(x).v
    below, e = made.route_back(v)
    torch.testing.assert_close(unsquash(below), torch.einsum("bij,ijod,bjd->bio", e, made.back, v))


def test_coefficients_alone_are_those_of_routing_and_held_fixed() -> None:
    made, x = layer()
    v, c = made.encode(x)
    assert torch.equal(made.coefficients(x), c)
    assert torch.equal(made.back_coefficients(v), made.route_back(v).coefficients)
    assert not made.coefficients(x).requires_grad


def test_mixing_from_known_sums_is_mixing() -> None:
    made, x = layer()
    c = made.coefficients(x)
    for steps in (1, 3):
        known = mix(x, made.weight, c, steps, z=up(x, made.weight, c))
        assert torch.equal(known, mix(x, made.weight, c, steps))
