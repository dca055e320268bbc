"""Routing up, mixing, and Algorithm 1 (Hauser, 2020)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gencaps.papers.product_of_experts.layer import contrast, down, mix, up
from gencaps.primitives.routing_reference import route_reference
from gencaps.primitives.squash import length, squash
from tests.papers.product_of_experts.helpers import layer, normal


def plain_squash(z: Tensor) -> Tensor:
    """Writes Eq. (4) as it is printed."""
    square = z.square().sum(-1, keepdim=True)
    return square / (1 + square) * z / square.sqrt()


def algorithm_1(x: Tensor, w: Tensor, steps: int = 1) -> Tensor:
    """Writes Algorithm 1 out, capsule by capsule: the oracle of what training does.

    x (batch, I, d), w (J, I, o, d); gives Delta W, averaged over the batch.
    """
    batch, inputs, _ = x.shape
    change = torch.zeros_like(w)
    for b in range(batch):
        c = route_reference(x[b : b + 1], w, agreement="cosine", over="inputs").coefficients[0]  # c[j, i]
        pairs = [(j, i) for j in range(len(w)) for i in range(inputs)]

        def forward(below: list[Tensor], c: Tensor = c) -> list[Tensor]:
            return [sum(c[j, i] * (w[j, i] @ below[i]) for i in range(inputs)) for j in range(len(w))]  # type: ignore

        data = [x[b, i] for i in range(inputs)]
        z = forward(data)
        model, z_model = data, z
        for _ in range(steps):
            above = [plain_squash(z_model[j]) for j in range(len(w))]
            z_below = [sum(c[j, i] * (w[j, i].T @ above[j]) for j in range(len(w))) for i in range(inputs)]
            model = [plain_squash(z_below[i]) for i in range(inputs)]  # type: ignore
            z_model = forward(model)
        for j, i in pairs:
            positive = torch.outer(z[j], data[i]) / (1 + z[j] @ z[j])
            negative = torch.outer(z_model[j], model[i]) / (1 + z_model[j] @ z_model[j])
            change[j, i] += 2 * c[j, i] * (positive - negative)
    return change / batch


@pytest.mark.parametrize("steps", [1, 3])
def test_descending_the_contrast_is_algorithm_1(steps: int) -> None:
    made, x = layer()
    c = made.encode(x).coefficients.detach()
    with torch.no_grad():
        model = mix(x, made.weight, c, steps)
    data, negative = contrast(x, model, made.weight, c, c)
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
    ours, theirs = contrast(x, model, made.weight, c, c)
    before = (ours - theirs).mean()
    (slope,) = torch.autograd.grad(before, made.weight)
    with torch.no_grad():
        made.weight.sub_(0.1 * slope)
        ours, theirs = contrast(x, model, made.weight, c, c)
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


def test_decoding_undoes_the_last_squash_of_the_way_back() -> None:
    made, x = layer()
    v = made.encode(x).v
    e = made.route_back(v).coefficients
    torch.testing.assert_close(made.decode(v), torch.einsum("bij,ijod,bjd->bio", e, made.back, v))
