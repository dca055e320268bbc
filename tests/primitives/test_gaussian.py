from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Normal, kl_divergence

from gencaps.primitives.gaussian import bounded_log_var, kl_to_standard_normal, log_prob, sample


def _normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("mu", "log_var", "kl"),
    [
        ([0.0, 0.0], [0.0, 0.0], 0.0),  # the prior itself
        ([1.0, -2.0], [0.0, 0.0], 2.5),  # (1 + 4) / 2
        (
            [0.0],
            [math.log(4.0)],
            0.5 * (4 - 1 - math.log(4.0)),
        ),  # 0.807: positive, the paper's sign gives -0.807
        ([0.0], [-100.0], 49.5),  # (0 - 1 + 100) / 2
    ],
)
def test_kl_gives_the_numbers_worked_by_hand(mu: list[float], log_var: list[float], kl: float) -> None:
    torch.testing.assert_close(kl_to_standard_normal(torch.tensor(mu), torch.tensor(log_var)), torch.tensor(kl))


def test_kl_agrees_with_torch_distributions() -> None:
    mu, log_var = _normal(3, 4, 5), _normal(3, 4, 5, seed=1)
    theirs = kl_divergence(Normal(mu, (0.5 * log_var).exp()), Normal(torch.zeros_like(mu), 1.0)).sum(-1)
    torch.testing.assert_close(kl_to_standard_normal(mu, log_var), theirs)


def test_kl_agrees_with_the_average_log_ratio_of_samples() -> None:
    mu, log_var = torch.tensor([0.7, -0.3]), torch.tensor([-1.0, 0.5])
    noise = torch.randn(200_000, 2, generator=torch.Generator().manual_seed(0))
    z = sample(mu.expand_as(noise), log_var.expand_as(noise), noise)
    zero = torch.zeros_like(mu)
    ratio = (log_prob(z, mu, log_var) - log_prob(z, zero, zero)).sum(-1)
    assert abs(ratio.mean() - kl_to_standard_normal(mu, log_var)) < 5 * ratio.std() / math.sqrt(len(ratio))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=6), st.floats(-1e3, 1e3, width=32))
def test_kl_is_never_negative(log_var: list[float], mu: float) -> None:
    spread = torch.tensor(log_var)
    assert kl_to_standard_normal(torch.full_like(spread, mu), spread) >= 0


def test_kl_is_never_negative_beside_the_prior() -> None:
    # sigma^2 - 1 - log sigma^2 is the small difference of nearly equal numbers here
    log_var = torch.cat([torch.logspace(-20, 0, 4001), -torch.logspace(-20, 0, 4001)]).unsqueeze(-1)
    kl = kl_to_standard_normal(torch.zeros_like(log_var), log_var)
    assert (kl >= 0).all()
    torch.testing.assert_close(kl[3000], log_var[3000, 0] ** 2 / 4, rtol=1e-2, atol=0)  # half of a^2 / 2, at 1e-5


def test_gradients_agree_with_finite_differences() -> None:
    a, b, c = (_normal(2, 3, seed=seed).requires_grad_() for seed in range(3))
    assert torch.autograd.gradcheck(kl_to_standard_normal, (a, b))
    assert torch.autograd.gradcheck(sample, (a, b, c))
    assert torch.autograd.gradcheck(log_prob, (a, b, c))


def test_sample_has_the_mean_and_the_spread_asked_for() -> None:
    noise = torch.tensor([1.0, -1.0, 2.0])
    mu, log_var = torch.tensor([10.0, 20.0, 30.0]), torch.tensor([0.0, 2 * math.log(3.0), -200.0])
    torch.testing.assert_close(sample(mu, log_var, noise), torch.tensor([11.0, 17.0, 30.0]))


def test_log_prob_agrees_with_torch_distributions() -> None:
    x, mean, log_var = _normal(4, 3), _normal(4, 3, seed=1), _normal(4, 3, seed=2)
    torch.testing.assert_close(log_prob(x, mean, log_var), Normal(mean, (0.5 * log_var).exp()).log_prob(x))


def test_log_prob_broadcasts() -> None:
    # at the mean, with variance 1: -log(2 pi) / 2
    value = log_prob(torch.zeros(2, 1, 3), torch.zeros(4, 1), torch.zeros(()))
    torch.testing.assert_close(value, torch.full((2, 4, 3), -0.9189385))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("log_var", [-1e4, -1e3, -200.0, -100.0, 0.0, 80.0])
@pytest.mark.parametrize("distance", [0.0, 1e-3, 1.0, 100.0])
def test_small_sigma_gives_no_nan(dtype: torch.dtype, log_var: float, distance: float) -> None:
    x = torch.tensor([distance], dtype=dtype, requires_grad=True)
    mean = torch.zeros(1, dtype=dtype, requires_grad=True)
    spread = torch.tensor([log_var], dtype=dtype, requires_grad=True)
    value = log_prob(x, mean, spread) - kl_to_standard_normal(mean, spread) + sample(mean, spread, x)
    value.sum().backward()
    for tensor in (value, x.grad, mean.grad, spread.grad):
        assert tensor is not None
        assert torch.isfinite(tensor).all()


def test_bounded_log_var_changes_little_near_zero_and_never_leaves_its_bounds() -> None:
    raw = torch.tensor([-1e6, -40.0, -1.0, 0.0, 1.0, 40.0, 1e6])
    # 10 tanh(0.1) = 0.99668, 10 tanh(4) = 9.9933
    expected = torch.tensor([-10.0, -9.9933, -0.99668, 0.0, 0.99668, 9.9933, 10.0])
    torch.testing.assert_close(bounded_log_var(raw), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("start", [-30.0, 30.0])
def test_a_capsule_beyond_the_bounds_comes_back_to_the_prior(start: float) -> None:
    """With a hard clamp its gradient would be 0 and it would stay where it is."""
    raw = torch.full((1, 4), start, requires_grad=True)
    optimizer = torch.optim.Adam([raw], lr=1.0)
    for _ in range(2000):
        optimizer.zero_grad()
        kl_to_standard_normal(torch.zeros(1, 4), bounded_log_var(raw)).sum().backward()
        optimizer.step()
    assert kl_to_standard_normal(torch.zeros(1, 4), bounded_log_var(raw)).item() < 0.1
