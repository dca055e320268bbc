"""The Frechet distance, against numbers worked by hand and scipy's matrix root."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from gencaps.metrics.frechet import frechet_distance, gaussian_frechet, moments
from tests.helpers import refused

ZERO = torch.zeros(2, dtype=torch.float64)


def draw(n: int, features: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(features, features, generator=generator, dtype=torch.float64)
    return torch.randn(n, features, generator=generator, dtype=torch.float64) @ mix + seed


def turned(values: tuple[float, float], angle: float) -> Tensor:
    c, s = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    return turn @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ turn.T


def by_sqrtm(a: Tensor, b: Tensor) -> float:
    linalg = pytest.importorskip("scipy.linalg")
    x, y = a.numpy(), b.numpy()
    c1, c2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    cross = np.trace(linalg.sqrtm(c1 @ c2)).real
    return float(((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(c1) + np.trace(c2) - 2 * cross)


def test_frechet_of_diagonal_gaussians_by_hand() -> None:
    # |(3, 4)|^2 + (2 - 1)^2 + (1 - 3)^2 = 25 + 1 + 4
    mu = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert gaussian_frechet(mu, turned((4, 1), 0), ZERO, turned((1, 9), 0)) == pytest.approx(30, rel=1e-13)


def test_turning_both_gaussians_changes_nothing() -> None:
    assert gaussian_frechet(ZERO, turned((4, 1), 0.7), ZERO, turned((1, 9), 0.7)) == pytest.approx(5, rel=1e-13)


def test_frechet_of_gaussians_that_do_not_commute_by_hand() -> None:
    # C1 = diag(4, 1), C2 = [[5, 4], [4, 5]]: tr C1 C2 = 25, det C1 C2 = 36, so the trace of the root is
    # sqrt(25 + 2 sqrt(36)) = sqrt(37)
    expected = 5 + 10 - 2 * math.sqrt(37)
    assert gaussian_frechet(ZERO, turned((4, 1), 0), ZERO, turned((9, 1), math.pi / 4)) == pytest.approx(expected)


def test_singular_gaussians_are_measured_exactly() -> None:
    # lines along x and y: the roots multiply to zero, so 4 + 9
    assert gaussian_frechet(ZERO, turned((4, 0), 0), ZERO, turned((9, 0), math.pi / 2)) == pytest.approx(13, rel=1e-13)
    assert gaussian_frechet(ZERO, turned((4, 0), 0.3), ZERO, turned((9, 0), 0.3)) == pytest.approx(1, rel=1e-13)
    nothing = torch.zeros(2, 2, dtype=torch.float64)
    assert gaussian_frechet(ZERO, nothing, ZERO, nothing) == 0
    assert gaussian_frechet(ZERO, nothing, ZERO, turned((4, 1), 1)) == pytest.approx(5, rel=1e-13)


def test_frechet_agrees_with_scipys_matrix_root() -> None:
    a, b = draw(200, 12, 0), draw(150, 12, 1)
    assert frechet_distance(a, b) == pytest.approx(by_sqrtm(a, b), rel=1e-10)


@pytest.mark.parametrize("n", [3, 200])  # singular covariances and full ones
def test_equal_sets_are_at_zero_and_order_does_not_matter(n: int) -> None:
    a, b = draw(n, 12, 0), draw(n + 5, 12, 1)
    scale = a.var(0).sum().item()
    assert frechet_distance(a, a.flip(0)) < 1e-12 * scale
    assert frechet_distance(a, b) == pytest.approx(frechet_distance(b, a), rel=1e-12)
    assert frechet_distance(a, b) > 0.1


def test_moving_one_set_adds_the_squared_step() -> None:
    a, step = draw(50, 6, 0), torch.arange(6.0, dtype=torch.float64)
    assert frechet_distance(a, a + step) == pytest.approx(55, rel=1e-10)  # 1 + 4 + 9 + 16 + 25


def test_features_may_come_in_batches_and_in_single_precision() -> None:
    a, b = draw(60, 6, 0), draw(60, 6, 1)
    again = torch.cat(list(reversed(a.split(7))))
    assert frechet_distance(again, b) == pytest.approx(frechet_distance(a, b), rel=1e-12)
    assert frechet_distance(a.float(), b.float()) == pytest.approx(frechet_distance(a, b), rel=1e-5)
    assert moments(a.float()).cov.dtype == torch.float64


def test_frechet_refuses_what_it_cannot_measure() -> None:
    a = draw(5, 3, 0)
    refused(lambda: frechet_distance(a[:1], a), "first set", "1 sample", "at least 2")
    refused(lambda: frechet_distance(a, a[:, :2]), "3", "2", "same network")
    refused(lambda: frechet_distance(a, a.where(a != a[0, 0], torch.nan)), "second set", "not finite")
