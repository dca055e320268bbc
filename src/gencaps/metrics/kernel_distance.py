"""How far two sets of features lie apart by a kernel: unbiased, also for small sets."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_unlike, refuse_unusable

ROWS = 4096
"""Samples whose kernel is held at a time."""
Z95 = 1.959964
"""Standard deviations either side of a normal mean that hold 95 % of it."""


class KernelDistance(NamedTuple):
    """A kernel distance with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    subsets: int
    size: int


def kernel_distance(
    a: Float[Tensor, "n features_a"],
    b: Float[Tensor, "m features_b"],
    *,
    subsets: int = 100,
    size: int = 1000,
    seed: int = 0,
) -> KernelDistance:
    """Measures the kernel distance as a mean over random subsets, with a 95 % confidence interval.

    (Binkowski et al., 2018), Sec. 4, where the features are Inception's and the score is called KID. Ours is
    named by its features: judge-KID, KID-EffNetLite0.

    The interval is the normal one of the delete-d jackknife (Shao and Wu, 1989): it covers what other samples of
    the same models would give, not only the draw of the subsets. The variance ``v`` between subsets of ``size``
    out of ``n`` gives ``v * (size / (n - size) + 1 / subsets)``, with ``n`` the smaller set. It is too wide rather
    than too narrow where the sets are equal in distribution or differ in number.

    Args:
        a: features of one set, one row a sample.
        b: features of the other, by the same network.
        subsets: pairs of subsets drawn, each without replacement.
        size: samples in a subset; at most half of the smaller set is taken, so that subsets differ.
        seed: of the draw.
    """
    if subsets < 2 or size < 2:
        raise GencapsError(f"{subsets} subsets of {size} samples give no interval; take at least 2 of 2")
    _refuse(a, b)
    least = min(len(a), len(b))
    size = min(size, max(2, least // 2))
    generator = torch.Generator().manual_seed(seed)

    def draw(features: Tensor) -> Tensor:
        return features[torch.randperm(len(features), generator=generator)[:size].to(features.device)]

    values = torch.tensor([_mmd2(draw(a), draw(b)) for _ in range(subsets)], dtype=torch.float64)
    mean = values.mean().item()
    # two samples have one subset, which says nothing about others
    share = size / (least - size) if least > size else math.inf
    half = Z95 * math.sqrt(values.var().item() * (share + 1 / subsets)) if least > size else math.inf
    return KernelDistance(mean, mean - half, mean + half, subsets, size)


def mmd2_unbiased(a: Float[Tensor, "n features_a"], b: Float[Tensor, "m features_b"]) -> float:
    """Estimates the squared maximum mean discrepancy without bias, so that it may be negative.

    ``mean_{i != j} k(a_i, a_j) + mean_{i != j} k(b_i, b_j) - 2 mean_{i, j} k(a_i, b_j)`` with
    ``k(x, y) = (x . y / f + 1)^3`` for ``f`` features. (Gretton et al., 2012), Eq. (3); the kernel of
    (Binkowski et al., 2018), Sec. 4. In float64, on the features' device.
    """
    _refuse(a, b)
    return _mmd2(a, b)


def _refuse(a: Tensor, b: Tensor) -> None:
    refuse_unlike(a, b)
    refuse_unusable(a, "the first set", least=2)
    refuse_unusable(b, "the second set", least=2)


def _mmd2(a: Float[Tensor, "n features"], b: Float[Tensor, "m features"]) -> float:
    a, b = a.double(), b.to(a.device).double()
    n, m = len(a), len(b)
    within_a = (_kernel_sum(a, a) - _kernel(a.square().sum(1), a.shape[1]).sum()) / (n * (n - 1))
    within_b = (_kernel_sum(b, b) - _kernel(b.square().sum(1), b.shape[1]).sum()) / (m * (m - 1))
    return (within_a + within_b - 2 * _kernel_sum(a, b) / (n * m)).item()


def _kernel(products: Float[Tensor, "*shape"], features: int) -> Float[Tensor, "*shape"]:
    return (products / features + 1) ** 3


def _kernel_sum(x: Float[Tensor, "n features"], y: Float[Tensor, "m features"]) -> Float[Tensor, ""]:
    """Sums the kernel over all pairs; never holds more than ``ROWS`` squared of them."""
    total = x.new_zeros(())
    for rows in x.split(ROWS):
        for columns in y.split(ROWS):
            total = total + _kernel(rows @ columns.T, x.shape[1]).sum()
    return total
