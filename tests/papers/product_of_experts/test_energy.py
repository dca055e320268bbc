"""The laws of section 3 (Hauser, 2020)."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from gencaps.papers.product_of_experts.energy import (
    conditional,
    energy,
    free_energy,
    gradient,
    log_joint,
    log_marginal,
)
from gencaps.papers.product_of_experts.layer import up
from gencaps.primitives.squash import length, squash
from tests.papers.product_of_experts.helpers import layer, normal


def every_state(capsules: int) -> torch.Tensor:
    """Lists the 2^J states of firing."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=capsules)), dtype=torch.float64)


def test_energy_gives_the_numbers_worked_by_hand() -> None:
    z = torch.tensor([[[3.0, 4.0], [0.0, 2.0]]])  # squared lengths 25 and 4
    for firing, expected in (([1.0, 0.0], -math.log(25)), ([1.0, 1.0], -math.log(100)), ([0.0, 0.0], 0.0)):
        torch.testing.assert_close(energy(z, torch.tensor([firing])), torch.tensor([expected]))
        torch.testing.assert_close(log_joint(z, torch.tensor([firing])), torch.tensor([-expected]))


def test_summing_over_all_states_of_firing_gives_the_marginal() -> None:
    z = normal(3, 6, 4)
    states = every_state(6)
    each = torch.stack([log_joint(z, state.expand(3, -1)) for state in states])
    torch.testing.assert_close(each.logsumexp(0), log_marginal(z), rtol=1e-12, atol=0)
    torch.testing.assert_close(free_energy(z), -log_marginal(z), rtol=0, atol=0)


def test_conditional_is_the_length_of_the_squashed_capsule() -> None:
    z = normal(40, 5, 4) * torch.logspace(-5, 4, 40, dtype=torch.float64)[:, None, None]
    torch.testing.assert_close(conditional(z), length(squash(z)), rtol=1e-12, atol=0)


def test_conditional_is_joint_over_marginal_by_brute_force() -> None:
    # the share of the states in which capsule 2 fires, among all states: not from the formula of Eq. (12)
    z, states = normal(3, 4, 3), every_state(4)
    p = torch.stack([log_joint(z, state.expand(3, -1)) for state in states]).softmax(0)
    torch.testing.assert_close((p * states[:, 2:3]).sum(0), conditional(z)[:, 2], rtol=1e-12, atol=0)
    # Eq. (11): two capsules fire independently of each other
    both = (p * states[:, 1:2] * states[:, 2:3]).sum(0)
    torch.testing.assert_close(both, conditional(z)[:, 1] * conditional(z)[:, 2], rtol=1e-12, atol=0)


def test_zero_capsules_are_off_and_their_energy_and_its_gradient_are_finite() -> None:
    z = torch.zeros(2, 3, 4, requires_grad=True)
    assert (conditional(z) == 0).all()
    free_energy(z).sum().backward()
    assert z.grad is not None
    assert (z.grad == 0).all()
    assert (energy(z.detach(), torch.zeros(2, 3)) == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e25])
def test_conditional_and_energy_have_finite_values_and_gradients_at_any_length(dtype: torch.dtype, size: float) -> None:
    z = torch.full((1, 2, 3), size, dtype=dtype, requires_grad=True)
    fired = torch.ones(1, 2, dtype=dtype)
    for value in (conditional(z).sum(), energy(z, fired).sum()):
        (slope,) = torch.autograd.grad(value, z)
        assert value.isfinite()
        assert slope.isfinite().all()
    if size > 0:  # two capsules of length sqrt(3) size
        wanted = torch.tensor([-2 * math.log(3 * size**2)], dtype=dtype)
        torch.testing.assert_close(energy(z.detach(), fired), wanted)


def test_gradient_of_one_phase_is_that_of_autograd() -> None:
    made, x = layer()
    c = made.encode(x).coefficients.detach()
    z = up(x, made.weight, c)
    (by_autograd,) = torch.autograd.grad(log_marginal(z).mean(), made.weight)
    torch.testing.assert_close(gradient(x, z.detach(), c), by_autograd, rtol=1e-10, atol=1e-14)
