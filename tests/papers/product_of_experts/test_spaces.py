"""The laws of capsules on S^m x R^n x (0, 1)."""

from __future__ import annotations

import math

import pytest
import torch

from gencaps.papers.product_of_experts.domain import into_half
from gencaps.papers.product_of_experts.energy import log_marginal
from gencaps.papers.product_of_experts.spaces import as_drawn, fired, log_odds, presence, squash_onto, unsquash_from
from gencaps.primitives.squash import direction, length, squash, unsquash
from tests.papers.product_of_experts.helpers import normal


def test_without_a_line_they_are_the_papers_capsules() -> None:
    z = normal(20, 5)
    x = squash_onto(z, 0)
    assert torch.equal(x, squash(z))
    assert torch.equal(unsquash_from(x, 0), unsquash(x))
    assert torch.equal(presence(x, 0), length(x))
    torch.testing.assert_close(log_odds(z, 0).sigmoid(), length(x))
    torch.testing.assert_close(fired(z, 0), direction(z))


@pytest.mark.parametrize("line", [1, 3, 4])
def test_unsquashing_undoes_squashing(line: int) -> None:
    z = normal(200, 5) * torch.logspace(-4, 0.3, 200, dtype=torch.float64)[:, None]
    torch.testing.assert_close(unsquash_from(squash_onto(z, line), line), z, rtol=1e-6, atol=0)


def test_firing_is_what_summing_out_the_place_leaves() -> None:
    # exp(-E) over a fine grid of places tau, capsule off and on: not from the closed form
    z = normal(6, 3, seed=4)  # two numbers on the circle, one on the line
    tau = torch.linspace(-12, 12, 4001, dtype=torch.float64)
    cell = (tau[1] - tau[0]) / math.sqrt(2 * math.pi)  # the measure in which N(0, I) is 1
    off = (-0.5 * tau.square()).exp().sum() * cell
    square, t = z[:, :2].square().sum(1, keepdim=True), z[:, 2:]
    on = (square * (t * tau - 0.5 * tau.square()).exp()).sum(1) * cell
    torch.testing.assert_close(presence(squash_onto(z, 1), 1), on / (on + off), rtol=1e-9, atol=0)
    torch.testing.assert_close(log_marginal(z.unsqueeze(1), 1), (on + off).log(), rtol=1e-9, atol=0)
    # where it fires the mean place is t
    mean = (tau * (t * tau - 0.5 * tau.square()).exp()).sum(1) / (t * tau - 0.5 * tau.square()).exp().sum(1)
    torch.testing.assert_close(mean, t[:, 0], rtol=1e-9, atol=1e-12)


def test_the_slope_of_the_marginal_is_the_firing_times_what_fires() -> None:
    # d log(1 + ||a||^2 exp(||t||^2 / 2)) = P(on) (2 a / ||a||^2, t)
    z = normal(4, 3, 5).requires_grad_()
    (found,) = torch.autograd.grad(log_marginal(z, 2).sum(), z)
    a, t = z.detach().split([3, 2], -1)
    p = log_odds(z.detach(), 2).sigmoid().unsqueeze(-1)
    wanted = p * torch.cat([2 * a / a.square().sum(-1, keepdim=True), t], -1)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=0)


def test_a_place_and_its_opposite_fire_alike_and_point_alike() -> None:
    z = normal(10, 5)
    back = z * torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    x, y = squash_onto(z, 2), squash_onto(back, 2)
    assert torch.equal(x[:, :3], y[:, :3])
    assert torch.equal(x[:, 3:], -y[:, 3:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zero_capsules_are_off_and_gradients_there_are_finite(dtype: torch.dtype) -> None:
    z = torch.zeros(2, 3, 4, dtype=dtype, requires_grad=True)
    x = squash_onto(z, 2)
    assert (x == 0).all()
    assert (unsquash_from(x, 2) == 0).all()
    (x.sum() + log_marginal(z, 2).sum()).backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_the_half_is_that_of_the_sphere_alone() -> None:
    z, mean = normal(100, 5), normal(100, 5, seed=1)
    half = into_half(z, mean, 2)
    assert torch.equal(half[:, 3:], z[:, 3:])
    assert (torch.einsum("bd,bd->b", half[:, :3], mean[:, :3]) >= 0).all()
    torch.testing.assert_close(length(half[:, :3]), length(z[:, :3]))


def test_as_drawn_has_the_second_moment_of_what_is_drawn() -> None:
    e = as_drawn(normal(200_000, 4), 2)
    torch.testing.assert_close(e.T @ e / len(e), torch.eye(4, dtype=torch.float64), atol=0.02, rtol=0)
