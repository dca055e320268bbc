"""How far two sets of features lie apart when each is taken for a Gaussian."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.metrics.checks import refuse_shape, refuse_unlike, refuse_unusable


class Moments(NamedTuple):
    """The Gaussian that a set of features is taken for."""

    mu: Float[Tensor, "features"]
    cov: Float[Tensor, "features features"]


def moments(features: Float[Tensor, "n features"], name: str = "the set") -> Moments:
    """Gives the mean and the unbiased covariance (over ``n - 1``) in float64."""
    refuse_shape(features, "n features", f"the features of {name}")
    refuse_unusable(features, name, least=2)
    features = features.double()
    mu = features.mean(0)
    centred = features - mu
    return Moments(mu, centred.T @ centred / (len(features) - 1))


def frechet_distance(a: Float[Tensor, "n features_a"], b: Float[Tensor, "m features_b"]) -> float:
    """Measures the squared Frechet distance between the Gaussians of two sets of features.

    (Heusel et al., 2017), Eq. (6). The features are the caller's: with the judge's the score is called
    judge-FD, and never FID, which is Inception's. In float64, on the features' device.

    Two samples are enough to compute it, but it is biased upwards by about one over the number of samples, and
    badly so with fewer samples than features, where the covariances are singular. Compare only scores of equally
    many samples, or use the kernel distance, which is unbiased.

    Args:
        a: features of one set, one row a sample.
        b: features of the other, by the same network.
    """
    refuse_unlike(a, b)
    return gaussian_frechet(*moments(a, "the first set"), *moments(b.to(a.device), "the second set"))


def gaussian_frechet(
    mu1: Float[Tensor, "features"],
    cov1: Float[Tensor, "features features"],
    mu2: Float[Tensor, "features"],
    cov2: Float[Tensor, "features features"],
) -> float:
    """Measures the squared Frechet (2-Wasserstein) distance between two Gaussians.

    ``|mu1 - mu2|^2 + tr(C1 + C2 - 2 (C1^1/2 C2 C1^1/2)^1/2)``, (Dowson and Landau, 1982), Eq. (4). Singular
    covariances are fine; the result is never negative and never NaN.

    Args:
        mu1: the mean of one.
        cov1: ``C1``, symmetric and not negative.
        mu2: the mean of the other.
        cov2: ``C2``.
    """
    # tr (R1 C2 R1)^1/2 is the sum of the singular values of R1 R2: no root is taken of a rounded zero, which
    # would turn 1e-16 into 1e-8
    cross = torch.linalg.svdvals(_root(cov1) @ _root(cov2)).sum()
    spread = cov1.double().trace() + cov2.double().trace() - 2 * cross
    return ((mu1.double() - mu2.double()).square().sum() + spread).clamp(min=0).item()


def _root(cov: Float[Tensor, "features features"]) -> Float[Tensor, "features features"]:
    """Takes the symmetric root of a covariance; what rounding left of its null space counts as zero."""
    values, vectors = torch.linalg.eigh(cov.double())
    least = len(cov) * torch.finfo(torch.float64).eps * values.abs().max()
    return (vectors * values.where(values > least, 0.0).sqrt()) @ vectors.T
