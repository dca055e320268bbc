"""Diagonal Gaussians, written by their mean and log variance."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

LARGEST = 10.0
"""Bound of |log sigma^2|: far outside what a picture needs, and far inside what float32 can exponentiate."""


def bounded_log_var(raw: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """Keeps log sigma^2 within +-10, smoothly: ``10 tanh(raw / 10)``.

    A hard clamp has no gradient outside its bounds: a capsule that strays there, as happens at a high learning
    rate, never comes back.
    """
    return LARGEST * torch.tanh(raw / LARGEST)


def kl_to_standard_normal(
    mu: Float[Tensor, "*batch dim"], log_var: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch"]:
    """Measures how far each capsule's Gaussian is from the prior: small means that its entity is present.

    ``KL(N(mu, sigma^2) || N(0, I)) = 0.5 * sum(mu^2 + sigma^2 - 1 - log sigma^2)`` over the last axis; never
    negative. (Huang et al., 2018), Eq. (2).

    Note: departs from Eq. (2) in its sign: the paper prints minus the divergence.

    Args:
        mu: the means.
        log_var: ``log sigma^2``.
    """
    # expm1(a) >= a, but its last digit may be rounded below a; the clamp keeps the law
    excess = (torch.expm1(log_var) - log_var).clamp(min=0)
    return 0.5 * (mu.square() + excess).sum(-1)


def sample(
    mu: Float[Tensor, "*shape"], log_var: Float[Tensor, "*shape"], noise: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """Draws from a Gaussian so that gradients reach its parameters: ``mu + sigma * noise``.

    The reparameterisation trick, (Huang et al., 2018), Sec. 3.2.

    Args:
        mu: the means.
        log_var: ``log sigma^2``.
        noise: ``epsilon``, drawn from N(0, I) by the caller.
    """
    return mu + torch.exp(0.5 * log_var) * noise


def log_prob(
    x: Float[Tensor, " ..."], mean: Float[Tensor, " ..."], log_var: Float[Tensor, " ..."]
) -> Float[Tensor, " ..."]:
    """Gives the log density of each number under its own Gaussian (shapes broadcast, nothing is summed).

    ``-0.5 * (log 2 pi + log sigma^2 + (x - mean)^2 / sigma^2)``; the child poses of (Smith et al., 2021), Eq.
    (5).

    A variance too small for its inverse to be squared in this dtype (below about 1e-28 in float32) is taken
    as that bound, so that ``x = mean`` with a vanishing sigma is a large number, never ``0 * infinity``.

    Args:
        x: where the density is asked for.
        mean: the means.
        log_var: ``log sigma^2``.
    """
    least = 0.75 * math.log(torch.finfo(log_var.dtype).tiny)
    log_var = log_var.clamp(min=least)
    return -0.5 * (math.log(2 * math.pi) + log_var + ((x - mean) * torch.exp(-0.5 * log_var)).square())
