"""Each capsule by itself as a factor analyser: what it infers, what falls to it, and that it learns to draw."""

from __future__ import annotations

import torch

from gencaps.papers.product_of_experts import factors
from gencaps.papers.product_of_experts.factors import Factors, see, share_out
from gencaps.papers.product_of_experts.painting import paint_alone
from tests.papers.product_of_experts.helpers import normal

SHARE = 0.6


def test_what_a_capsule_infers_is_ridge_regression_written_out() -> None:
    z, back = normal(5, 6, 2), normal(6, 3, 2, 4, seed=1)
    cost, place = see(z, back, SHARE)
    noise = factors.RIDGE * (z - z.mean(0)).square().mean()
    for b in range(5):
        for j in range(3):
            a = SHARE * back[:, j].flatten(0, 1)  # twelve numbers below, four of the capsule
            own, ways = a[:, 0], a[:, 1:]
            left = z[b].flatten() - own
            torch.testing.assert_close(cost[b, j], left @ left)
            wanted = torch.linalg.solve(ways.T @ ways + noise * torch.eye(3).double(), ways.T @ left)
            torch.testing.assert_close(place[b, j], wanted)


def test_factors_follow_in_full_precision_under_autocast() -> None:
    z, back = normal(40, 6, 2).float(), normal(6, 3, 2, 4, seed=1).float()
    plain, half = factors.Factors(3, 3), factors.Factors(3, 3)
    wanted = plain(z, back, SHARE)
    with torch.autocast("cpu", dtype=torch.float16):
        torch.testing.assert_close(half(z, back, SHARE), wanted)
    torch.testing.assert_close(half.covariance, plain.covariance)


def test_pictures_are_shared_out_alike_even_where_one_capsule_is_better_for_all() -> None:
    cost = 5 + normal(600, 4).abs()
    cost[:, 2] -= 4.9
    counts = torch.bincount(share_out(cost), minlength=4)
    assert counts.min() > 100
    assert torch.equal(share_out(cost), share_out(cost + 1000 * torch.arange(4)))  # what a capsule costs all is nothing


def test_a_picture_falls_to_the_capsule_that_is_nearest() -> None:
    own = torch.arange(4).repeat(25)
    cost = torch.ones(100, 4).double() + 0.1 * normal(100, 4)
    cost[torch.arange(100), own] -= 0.9
    assert torch.equal(share_out(cost), own)


def test_places_are_evened_out_to_those_that_new_ones_are_drawn_from() -> None:
    made, back = Factors(2, 2).double(), normal(6, 2, 2, 3, seed=1)
    back[:, 0, :, 0] -= 3
    back[:, 1, :, 0] += 3
    found: list[torch.Tensor] = []
    for seed in range(160):
        one = torch.arange(40) % 2
        # far from 0, of unlike spread, and bound to one another
        t = normal(40, 2, seed=seed) @ torch.tensor([[2.0, 1.5], [0.0, 0.3]]).double() + torch.tensor([4.0, -2.0])
        drawn = torch.zeros(40, 2, 3).double()
        drawn[torch.arange(40), one] = torch.cat([torch.ones(40, 1), t], 1).double()
        z = paint_alone(drawn, back, SHARE)
        even = made(z, back, SHARE)
        assert torch.equal((even != 0).any(-1).int().argmax(1), one)
        assert torch.equal(even[torch.arange(40), one, 0], torch.ones(40).double())
        found.append(even[torch.arange(40), one, 1:])
    late = torch.cat(found[100:])
    assert late.mean(0).abs().max() < 0.15
    torch.testing.assert_close(late.T @ late / len(late), torch.eye(2).double(), atol=0.2, rtol=0)


def test_a_capsule_that_nothing_falls_to_keeps_its_moments() -> None:
    made, place = Factors(3, 2).double(), normal(4, 3, 2) + 5
    falls = torch.tensor([[True, False, False], [False, True, False], [False, True, False], [True, False, False]])
    made.follow(place, falls)
    assert torch.equal(made.mean[2], torch.zeros(2).double())
    assert torch.equal(made.covariance[2], torch.eye(2).double())
    # the first batch counts as much as what was there before
    torch.testing.assert_close(made.mean[0], place[[0, 3], 0].mean(0) / 2)
    torch.testing.assert_close(made.mean[1], place[[1, 2], 1].mean(0) / 2)


def test_capsules_learn_to_draw_the_pictures_that_fall_to_them() -> None:
    """Three groups of codes, each its own mean and two ways to vary: what N(0, I) paints has their moments."""
    torch.manual_seed(0)
    means, ways = 6 * torch.randn(3, 12), torch.randn(3, 12, 2)
    back = torch.nn.Parameter(0.1 * torch.randn(6, 3, 2, 3))
    made, mover = Factors(3, 2), torch.optim.SGD([back], 0.5)
    for _ in range(500):
        group = torch.randint(3, (90,))
        z = (means[group] + torch.einsum("bod,bd->bo", ways[group], torch.randn(90, 2))).view(90, 6, 2)
        one = made(z, back, SHARE)
        mover.zero_grad()
        (0.5 * (paint_alone(one, back, SHARE) - z).square().sum((1, 2)).mean()).backward()
        mover.step()
    own = SHARE * back.detach()[..., 0].transpose(0, 1).flatten(1)  # what each paints at t = 0
    which = torch.cdist(own, means).argmin(1)
    assert sorted(which.tolist()) == [0, 1, 2]
    assert (own - means[which]).norm(dim=1).max() < 1.0
    a = SHARE * back.detach()[..., 1:].permute(1, 0, 2, 3).flatten(1, 2)
    for capsule, group in enumerate(which):
        wanted = ways[group] @ ways[group].T
        assert (a[capsule] @ a[capsule].T - wanted).norm() < 0.25 * wanted.norm()
