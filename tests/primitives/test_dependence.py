"""Laws of the squared correlation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gencaps.primitives.dependence import squared_correlation


def test_it_is_the_sum_of_numpys_squared_correlations() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    a[:, 0] += b[:, 1]
    wanted = (np.corrcoef(a.T, b.T)[:3, 3:] ** 2).sum()
    assert squared_correlation(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(wanted, rel=1e-4)


def test_scale_shift_and_sign_change_nothing() -> None:
    a, b = torch.randn(40, 2, generator=torch.Generator().manual_seed(0)).split(1, 1)
    here = squared_correlation(a, b)
    torch.testing.assert_close(squared_correlation(-3 * a + 7, 2 * b - 1), here, rtol=1e-4, atol=1e-6)


def test_a_copy_tells_all_and_a_constant_nothing() -> None:
    a = torch.tensor([[0.0], [1.0], [1.0], [3.0]])
    assert squared_correlation(a, a).item() == pytest.approx(1.0, abs=1e-5)
    still = torch.full((4, 1), 2.0, requires_grad=True)
    told = squared_correlation(still, a)
    assert told.item() == 0
    told.backward()
    assert torch.isfinite(still.grad).all()  # pyright: ignore[reportArgumentType]


def test_going_down_its_slope_makes_numbers_tell_less() -> None:
    generator = torch.Generator().manual_seed(0)
    b = (torch.rand(64, 1, generator=generator) < 0.5).float()
    a = (b + 0.3 * torch.randn(64, 1, generator=generator)).requires_grad_()
    before = squared_correlation(a, b)
    (slope,) = torch.autograd.grad(before, a)
    assert squared_correlation(a - 0.1 * slope / slope.norm(), b) < before
