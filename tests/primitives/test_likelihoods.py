from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from torch.distributions import Bernoulli, Normal

from gencaps.primitives.likelihoods import (
    LIKELIHOODS,
    Likelihood,
    bernoulli_cross_entropy,
    gaussian_negative_log_likelihood,
    half_squared_error,
)


def _pictures(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_half_squared_error_gives_the_numbers_worked_by_hand() -> None:
    x_hat, x = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 4.0], [0.0, 3.0]])
    torch.testing.assert_close(half_squared_error(x_hat, x), torch.tensor([2.5, 4.5]))  # (1 + 4) / 2, 9 / 2


def test_bernoulli_cross_entropy_agrees_with_torch_distributions() -> None:
    logits, x = 4 * _pictures(3, 1, 4, 5) - 2, (_pictures(3, 1, 4, 5, seed=1) > 0.5).double()
    theirs = -Bernoulli(logits=logits).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_cross_entropy(logits, x), theirs)


def test_bernoulli_cross_entropy_of_a_grey_pixel_is_worked_by_hand() -> None:
    # p = 3 / 4, x = 1 / 4: -(1/4) log(3/4) - (3/4) log(1/4)
    out = bernoulli_cross_entropy(torch.tensor([[math.log(3.0)]]), torch.tensor([[0.25]]))
    torch.testing.assert_close(out, torch.tensor([-0.25 * math.log(0.75) - 0.75 * math.log(0.25)]))


@pytest.mark.parametrize("sigma", [0.2, 3.0])
def test_gaussian_negative_log_likelihood_agrees_with_torch_distributions(sigma: float) -> None:
    mean, x = _pictures(3, 2, 4, 5), _pictures(3, 2, 4, 5, seed=1)
    theirs = -Normal(mean, sigma).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(gaussian_negative_log_likelihood(mean, x, sigma), theirs)


def test_gaussian_of_unit_variance_is_the_half_squared_error_and_a_constant() -> None:
    mean, x = _pictures(3, 2, 4, 5), _pictures(3, 2, 4, 5, seed=1)
    constant = 0.5 * 40 * math.log(2 * math.pi)
    torch.testing.assert_close(gaussian_negative_log_likelihood(mean, x, 1.0), half_squared_error(mean, x) + constant)


def test_the_table_holds_exactly_the_names_of_the_choice() -> None:
    assert set(LIKELIHOODS) == set(get_args(Likelihood))


@pytest.mark.parametrize("name", get_args(Likelihood))
def test_every_choice_is_least_where_the_picture_is_right(name: Likelihood) -> None:
    x = 0.1 + 0.8 * _pictures(2, 1, 3, 3)
    right = torch.logit(x).requires_grad_()
    (grad,) = torch.autograd.grad(LIKELIHOODS[name](right, x).sum(), right)
    torch.testing.assert_close(grad, torch.zeros_like(grad))
    for wrong in (right + 0.1, right - 0.1):
        assert (LIKELIHOODS[name](wrong, x) > LIKELIHOODS[name](right, x)).all()


def test_mse_of_the_table_sees_the_sigmoid_of_the_logits() -> None:
    # sigmoid(0) = 1 / 2: 0.5 (0.5 - 1)^2
    torch.testing.assert_close(LIKELIHOODS["mse"](torch.zeros(1, 1), torch.ones(1, 1)), torch.tensor([0.125]))


@pytest.mark.parametrize("name", get_args(Likelihood))
def test_gradients_agree_with_finite_differences(name: Likelihood) -> None:
    logits, x = (4 * _pictures(2, 3, 2, 2) - 2).requires_grad_(), _pictures(2, 3, 2, 2, seed=1)
    assert torch.autograd.gradcheck(lambda a: LIKELIHOODS[name](a, x), logits)
    sigma = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, s: gaussian_negative_log_likelihood(a, x, s), (logits, sigma))


@pytest.mark.parametrize("name", get_args(Likelihood))
@pytest.mark.parametrize("logit", [-1e30, -1e4, 0.0, 1e4, 1e30])
def test_values_and_gradients_are_finite_at_extreme_logits(name: Likelihood, logit: float) -> None:
    logits = torch.full((1, 1, 2, 2), logit, requires_grad=True)
    value = LIKELIHOODS[name](logits, torch.tensor([0.0, 0.3, 0.7, 1.0]).view(1, 1, 2, 2))
    value.sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(value).all()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (3, 3, 5, 7), (1, 10), (0, 1, 4, 4)])
def test_one_value_per_example_for_any_size_and_channels(shape: tuple[int, ...]) -> None:
    x = _pictures(*shape)
    for value in (half_squared_error(x, x), gaussian_negative_log_likelihood(x, x, 0.2)):
        assert value.shape == shape[:1]
    assert (half_squared_error(x, x) == 0).all()
