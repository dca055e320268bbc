from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions.relaxed_bernoulli import LogitRelaxedBernoulli

from gencaps.primitives.concrete import log_prob_logit, sample_logit


def _numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _uniform(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_sample_gives_the_numbers_worked_by_hand() -> None:
    # U = 0.75: log odds log 3; (2 + log 3) / 0.5. U = 0.5: no noise
    out = sample_logit(torch.tensor([2.0, 2.0]), 0.5, torch.tensor([0.75, 0.5]))
    torch.testing.assert_close(out, torch.tensor([2 * (2 + math.log(3.0)), 4.0]))


def test_log_prob_gives_the_number_worked_by_hand() -> None:
    # at d = 0 the logistic density is 1 / 4, times the temperature
    out = log_prob_logit(torch.tensor([3.0]), torch.tensor([6.0]), 2.0)
    torch.testing.assert_close(out, torch.tensor([math.log(2.0 / 4.0)]))


@pytest.mark.parametrize("temperature", [0.1, 1.0, 3.0])
def test_log_prob_agrees_with_torch_distributions(temperature: float) -> None:
    y, logit = _numbers(5, 4) * 3, _numbers(5, 4, seed=1)
    theirs = LogitRelaxedBernoulli(torch.tensor(temperature, dtype=torch.float64), logits=logit).log_prob(y)
    torch.testing.assert_close(log_prob_logit(y, logit, temperature), theirs)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_the_density_integrates_to_one(temperature: float) -> None:
    y = torch.linspace(-200, 200, 400_001, dtype=torch.float64)
    density = log_prob_logit(y, torch.full_like(y, 0.8), temperature).exp()
    torch.testing.assert_close(torch.trapezoid(density, y), torch.ones((), dtype=torch.float64))


@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_a_sample_is_on_as_often_as_its_logit_says(temperature: float) -> None:
    logit = torch.full((100_000,), -0.7, dtype=torch.float64)
    on = (sample_logit(logit, temperature, _uniform(100_000)) > 0).double().mean()
    assert abs(on - torch.sigmoid(logit[0])) < 0.008  # five standard errors of a share of 100,000


def test_samples_follow_their_density() -> None:
    # the log density's average over samples is minus the entropy of the logistic: log lambda - 2
    logit = torch.full((200_000,), 1.3, dtype=torch.float64)
    y = sample_logit(logit, 0.5, _uniform(200_000))
    assert abs(log_prob_logit(y, logit, 0.5).mean() - (math.log(0.5) - 2)) < 0.02


def test_cold_samples_are_hard() -> None:
    t = torch.sigmoid(sample_logit(torch.zeros(1000, dtype=torch.float64), 1e-4, _uniform(1000)))
    assert ((t < 1e-6) | (t > 1 - 1e-6)).float().mean() > 0.99


def test_gradients_agree_with_finite_differences() -> None:
    a, b = (_numbers(2, 3, seed=seed).requires_grad_() for seed in range(2))
    uniform, temperature = _uniform(2, 3), torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, t: sample_logit(x, t, uniform), (a, temperature))
    assert torch.autograd.gradcheck(log_prob_logit, (a, b, temperature))


@pytest.mark.parametrize("logit", [-1e30, -1e4, -90.0, 0.0, 90.0, 1e4, 1e30])
@pytest.mark.parametrize("uniform", [0.0, 1e-30, 0.5, 1.0])
def test_values_and_gradients_are_finite_at_extreme_logits(logit: float, uniform: float) -> None:
    x = torch.tensor([logit], requires_grad=True)
    y = sample_logit(x, 0.5, torch.tensor([uniform]))
    value = log_prob_logit(y, x.flip(0) * 0.5, 0.5)
    (y + value).sum().backward()
    assert x.grad is not None
    for tensor in (y, value, x.grad):
        assert torch.isfinite(tensor).all()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_shapes_are_kept(shape: list[int]) -> None:
    y = sample_logit(_numbers(*shape), 1.0, _uniform(*shape))
    assert y.shape == log_prob_logit(y, y, 1.0).shape == torch.Size(shape)
