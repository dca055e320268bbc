"""The kernel distance, against double loops, moments worked by hand and repeated draws."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gencaps.metrics import kernel_distance as room
from gencaps.metrics.kernel_distance import kernel_distance, mmd2_unbiased
from tests.helpers import refused

# one feature, N(0, 1) against N(0.5, 1). Their moments are (0, 1, 0) and (0.5, 1.25, 1.625), and (xy + 1)^3 =
# 1 + 3 xy + 3 x^2 y^2 + x^3 y^3, so MMD^2 = 3 * 0.5^2 + 3 * 0.25^2 + 1.625^2
TRUE_MMD2 = 3.578125


def draw(n: int, features: int, seed: int) -> Tensor:
    return torch.randn(n, features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_loops(a: Tensor, b: Tensor) -> float:
    def k(x: Tensor, y: Tensor) -> float:
        return (sum(p * q for p, q in zip(x.tolist(), y.tolist(), strict=True)) / len(x) + 1) ** 3

    n, m = len(a), len(b)
    aa = sum(k(a[i], a[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    bb = sum(k(b[i], b[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    return aa + bb - 2 * sum(k(x, y) for x in a for y in b) / (n * m)


def test_mmd_agrees_with_a_double_loop() -> None:
    a, b = draw(4, 3, 0), draw(3, 3, 1) + 0.5
    assert mmd2_unbiased(a, b) == pytest.approx(by_loops(a, b), rel=1e-12)


def test_mmd_by_hand() -> None:
    # one feature: k(1, 1) = 8 within a, k(0, 0) = 1 within b, k(1, 0) = 1 across: 8 + 1 - 2
    assert mmd2_unbiased(torch.ones(2, 1), torch.zeros(2, 1)) == 7


def test_mmd_does_not_depend_on_order_or_on_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = draw(30, 5, 0), draw(20, 5, 1) + 1
    whole = mmd2_unbiased(a, b)
    assert mmd2_unbiased(a.flip(0), b.roll(3, 0)) == pytest.approx(whole, rel=1e-12)
    assert mmd2_unbiased(b, a) == pytest.approx(whole, rel=1e-12)
    monkeypatch.setattr(room, "ROWS", 7)
    assert mmd2_unbiased(a, b) == pytest.approx(whole, rel=1e-12)


def test_mmd_is_unbiased_on_equal_distributions() -> None:
    values = torch.tensor([mmd2_unbiased(draw(20, 4, 2 * i), draw(20, 4, 2 * i + 1)) for i in range(400)])
    assert values.min() < 0 < values.max()
    assert values.mean().abs() < 3 * values.std() / math.sqrt(len(values))
    # the biased estimate, diagonals left in, would stand this far off
    a, b = draw(20, 4, 0), draw(20, 4, 1)
    biased = ((a @ a.T / 4 + 1) ** 3).mean() + ((b @ b.T / 4 + 1) ** 3).mean() - 2 * ((a @ b.T / 4 + 1) ** 3).mean()
    assert biased > 10 * 3 * values.std() / math.sqrt(len(values))


def test_mmd_of_two_known_gaussians() -> None:
    values = torch.tensor([mmd2_unbiased(draw(200, 1, 2 * i), draw(200, 1, 2 * i + 1) + 0.5) for i in range(200)])
    assert abs(values.mean().item() - TRUE_MMD2) < 3 * values.std().item() / math.sqrt(len(values))


def test_the_interval_covers_the_true_distance_about_as_often_as_it_says() -> None:
    """Where it held only the draw of the subsets it would cover far less than half of the time."""
    covered = 0
    for i in range(100):
        found = kernel_distance(draw(200, 1, 2 * i), draw(200, 1, 2 * i + 1) + 0.5, subsets=30, size=50, seed=i)
        covered += found.low <= TRUE_MMD2 <= found.high
    assert 85 <= covered <= 99


def test_the_mean_over_subsets_is_near_the_whole_and_repeats_with_its_seed() -> None:
    a, b = draw(400, 3, 0), draw(300, 3, 1) + 1
    found = kernel_distance(a, b, subsets=50, size=100, seed=3)
    assert found == kernel_distance(a, b, subsets=50, size=100, seed=3)
    assert found != kernel_distance(a, b, subsets=50, size=100, seed=4)
    assert found.low < mmd2_unbiased(a, b) < found.high
    assert found.mean == pytest.approx((found.low + found.high) / 2)
    assert (found.subsets, found.size) == (50, 100)


def test_small_sets_take_smaller_subsets() -> None:
    a, b = draw(11, 3, 0), draw(40, 3, 1)
    assert kernel_distance(a, b, subsets=5).size == 5
    pair = kernel_distance(a[:2], b[:2], subsets=5)
    assert pair.mean == pytest.approx(mmd2_unbiased(a[:2], b[:2]))
    assert (pair.low, pair.high) == (-math.inf, math.inf)


def test_kernel_distance_refuses_what_it_cannot_measure() -> None:
    a = draw(5, 3, 0)
    refused(lambda: kernel_distance(a, a[:1]), "second set", "1 sample", "at least 2")
    refused(lambda: mmd2_unbiased(a[:0], a), "first set", "0 samples")
    refused(lambda: kernel_distance(a, a[:, :2]), "same network")
    refused(lambda: mmd2_unbiased(a * torch.nan, a), "first set", "not finite")
    refused(lambda: kernel_distance(a, a, subsets=1), "1 subsets", "at least 2")
