"""How varied a batch of pictures is: what falls when a generator collapses."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


@torch.no_grad()
def batch_diversity(
    made: Float[Tensor, "made channels height width"], real: Float[Tensor, "real channels height width"]
) -> Float[Tensor, ""]:
    """Gives how varied generated pictures are beside real ones: 1 where they vary alike, 0 where all are the same.

    The mean squared distance between two of the made pictures over that between two real ones. Over all pairs it is
    ``2 tr Cov``, so that no pair has to be looked at: ``tr Cov(made) / tr Cov(real)``. No gradient runs through it, and
    it is 1 where the real pictures are all the same: there is nothing to be compared with.

    Args:
        made: at least 2 generated pictures.
        real: at least 2 real ones.
    """
    ours, theirs = made.float().var(0).sum(), real.float().var(0).sum()
    return torch.where(theirs > 0, ours / theirs.clamp(min=torch.finfo(theirs.dtype).tiny), 1.0)
