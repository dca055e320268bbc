"""How U is learned, and what one capsule paints alone."""

from __future__ import annotations

import math

import pytest
import torch

from gencaps.papers.product_of_experts.domain import alone, check_domain, into_half
from gencaps.papers.product_of_experts.moments import moment_gap
from gencaps.papers.product_of_experts.painting import back_rule, best_alone, paint_alone
from gencaps.primitives.squash import squash, unsquash
from tests.helpers import refused
from tests.papers.product_of_experts.helpers import layer, normal


def test_the_rule_for_u_is_the_papers_written_out() -> None:
    made, below = layer()
    x, z = made.encode(below).v.detach(), unsquash(below)
    e = made.route_back(x).coefficients.detach()  # (batch, i, j)
    (found,) = torch.autograd.grad(back_rule(z, x, made.back, e).mean(), made.back)
    u, wanted = made.back.detach(), torch.zeros_like(made.back)
    for b in range(len(x)):
        z_model = [sum(e[b, i, j] * (u[i, j] @ x[b, j]) for j in range(4)) for i in range(6)]
        s_model = [sum(e[b, i, j] * (u[i, j].T @ z_model[i]) for i in range(6)) for j in range(4)]
        x_model = [squash(s) for s in s_model]  # type: ignore
        for i in range(6):
            for j in range(4):
                data = torch.outer(z[b, i], x[b, j]) / (1 + z[b, i] @ z[b, i])
                model = torch.outer(z_model[i], x_model[j]) / (1 + z_model[i] @ z_model[i])  # type: ignore
                wanted[i, j] += 2 * e[b, i, j] * (data - model) / len(x)
    torch.testing.assert_close(-found, wanted, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("iterations", [1, 2, 3, 6])
def test_the_share_of_a_capsule_alone_is_that_of_routing(iterations: int) -> None:
    made, _ = layer()
    made.back_iterations = iterations
    one = alone(squash(normal(5, 3)), torch.tensor([0, 1, 2, 3, 0]), 4)
    routed = made.route_back(one)
    share = made.share_alone
    torch.testing.assert_close(routed.coefficients[1, :, 1], torch.full((6,), share, dtype=torch.float64))
    torch.testing.assert_close(unsquash(routed.v), paint_alone(one, made.back, share))
    if iterations == 2:
        assert math.isclose(share, math.e / (math.e + 3))


def test_the_best_alone_is_found_by_trying_each() -> None:
    made, below = layer()
    x, z = made.encode(below).v.detach(), 3 * normal(5, 6, 2, seed=3)
    tries = [paint_alone(alone(x[:, j], torch.full((5,), j), 4), made.back, 0.7) for j in range(4)]
    errors = torch.stack([(t - z).square().sum((1, 2)) for t in tries], 1)
    errors = (errors - errors.mean(0)) / errors.std(0, correction=0)  # beside the others of the batch
    assert len(errors.argmin(1).unique()) > 1
    assert torch.equal(best_alone(z, x, made.back, 0.7), errors.argmin(1))


def test_capsules_are_compared_and_painted_in_full_precision_under_autocast() -> None:
    made, below = layer()
    made, z = made.float(), 3 * normal(5, 6, 2, seed=3).float()
    x = made.encode(below.float()).v.detach()
    plain = best_alone(z, x, made.back, 0.7), paint_alone(x, made.back, 0.7), moment_gap(x)
    with torch.autocast("cpu", dtype=torch.float16):
        under = best_alone(z, x, made.back, 0.7), paint_alone(x, made.back, 0.7), moment_gap(x)
    for one, other in zip(plain, under, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_the_restricted_domain_never_leaves_the_half_sphere() -> None:
    z, mean = normal(500, 16), normal(500, 16, seed=1)
    half = into_half(z, mean)
    assert (torch.einsum("bd,bd->b", half, mean) >= 0).all()
    inside = torch.einsum("bd,bd->b", z, mean) >= 0
    assert 0 < inside.sum() < 500
    assert torch.equal(half[inside], z[inside])
    assert torch.equal(half[~inside], -z[~inside])


def test_a_capsule_alone_stands_in_its_place_among_zeros() -> None:
    z = normal(3, 2)
    x = alone(z, torch.tensor([2, 0, 1]), 4)
    assert torch.equal(x[0, 2], z[0])
    assert torch.equal(x[1, 0], z[1])
    assert x.count_nonzero() == 6


def test_an_unknown_domain_is_refused() -> None:
    refused(lambda: check_domain("restriced"), "'restriced'", "did you mean 'restricted'?")


def test_the_gap_of_moments_by_hand() -> None:
    # one capsule of 2 numbers that always points one way: d = sqrt(2) (1, 0), E d d^T = [[2, 0], [0, 0]];
    # over I: 1 and -1, so (1 + 1) / 2
    same = torch.tensor([[[3.0, 0.0]], [[0.1, 0.0]]])
    torch.testing.assert_close(moment_gap(same), torch.tensor(1.0))
    # pointing along each axis in turn it is even, whatever the lengths
    even = torch.tensor([[[3.0, 0.0]], [[0.0, -0.1]]])
    torch.testing.assert_close(moment_gap(even), torch.tensor(0.0))
    # each capsule by itself: of two, one even and one not, the mean
    torch.testing.assert_close(moment_gap(torch.cat([same, even], 1)), torch.tensor(0.5))


def test_new_capsules_have_no_gap_of_moments() -> None:
    assert moment_gap(normal(20_000, 3, 4)) < 0.01
