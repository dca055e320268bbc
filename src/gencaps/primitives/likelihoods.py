"""How badly a picture is explained: summed over its pixels, one value per example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from gencaps.primitives import gaussian

Likelihood = Literal["mse", "bernoulli"]
"""The names in ``LIKELIHOODS``."""


def half_squared_error(
    x_hat: Float[Tensor, " batch *picture"], x: Float[Tensor, " batch *picture"]
) -> Float[Tensor, " batch"]:
    """Sums the squared differences: ``0.5 * ||x_hat - x||^2``. (Huang et al., 2018), Eq. (4).

    Args:
        x_hat: reconstructions (``x_r``).
        x: pictures.
    """
    return 0.5 * _per_example((x_hat - x).square())


def bernoulli_cross_entropy(
    logits: Float[Tensor, " batch *picture"], x: Float[Tensor, " batch *picture"]
) -> Float[Tensor, " batch"]:
    """Sums the cross entropies: ``-x log p - (1 - x) log(1 - p)`` with ``p = sigmoid(logits)``.

    The choice that (Huang et al., 2018), Sec. 3.2, offers for binary pictures beside Eq. (4).

    Args:
        logits: log odds of each pixel being white.
        x: pictures, in [0, 1].
    """
    return _per_example(functional.binary_cross_entropy_with_logits(logits, x, reduction="none"))


def gaussian_negative_log_likelihood(
    mean: Float[Tensor, " batch *picture"],
    x: Float[Tensor, " batch *picture"],
    sigma: float | Float[Tensor, ""],
) -> Float[Tensor, " batch"]:
    """Sums ``-log N(x; mean, sigma^2)`` with one sigma for all pixels. (Smith et al., 2021), Eq. (7).

    Args:
        mean: the painted picture (``P``).
        x: pictures.
        sigma: standard deviation of the pixels' noise.
    """
    log_var = 2 * torch.log(sigma * mean.new_ones(()))  # made on the device: a copy to it could not be recorded
    return -_per_example(gaussian.log_prob(x, mean, log_var))


def mse_from_logits(
    logits: Float[Tensor, " batch *picture"], x: Float[Tensor, " batch *picture"]
) -> Float[Tensor, " batch"]:
    """Gives the half squared error, (Huang et al., 2018), Eq. (4), of the picture ``sigmoid(logits)``.

    Args:
        logits: the picture before the sigmoid that keeps it in (0, 1).
        x: pictures, in [0, 1].
    """
    return half_squared_error(torch.sigmoid(logits), x)


LIKELIHOODS: dict[Likelihood, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": mse_from_logits,
    "bernoulli": bernoulli_cross_entropy,
}
"""Reconstruction losses by name; each takes (logits, x), and the picture is always ``sigmoid(logits)``."""


def _per_example(pixels: Float[Tensor, " batch *picture"]) -> Float[Tensor, " batch"]:
    return pixels.flatten(1).sum(1)
