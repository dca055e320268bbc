"""How much one set of numbers tells about another."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

LEAST_VARIANCE = 1e-6


def squared_correlation(a: Float[Tensor, "n p"], b: Float[Tensor, "n q"]) -> Float[Tensor, ""]:
    """Adds up the squared correlations of every column of a with every column of b: 0 where none tells of another.

    ``sum_ij cov(a_i, b_j)^2 / (var(a_i) var(b_j))``, from 0 to ``p q``; a column that does not vary tells nothing.
    """
    n = len(a)
    a, b = (x - x.mean(0) for x in (a, b))
    covariance = torch.einsum("np,nq->pq", a, b) / n
    spread = a.square().mean(0)[:, None] * b.square().mean(0)
    return (covariance.square() / (spread + LEAST_VARIANCE)).sum()
