"""How U, the way back from capsules to those below, is learned."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gencaps.papers.product_of_experts.layer import Lower, Upper, down, up
from gencaps.primitives.squash import length, squash

Back = Float[Tensor, "caps_in caps_out dim_in dim_out"]
One = Float[Tensor, "batch"]


def _pull(z: Lower) -> Lower:
    return z / (1 + length(z).square().unsqueeze(-1))


def back_rule(z: Lower, x: Upper, back: Back, e: Float[Tensor, "batch caps_in caps_out"]) -> One:
    """Gives a loss whose gradient is minus the paper's update of U, data minus model. (Hauser, 2020), section 4.1.

    ``2 e_ji (z_i x_j / (1 + ||z_i||^2) - z~_i x~_j / (1 + ||z~_i||^2))`` with ``z~_i = sum_j e_ji U_ji x_j`` and
    ``x~_j = squash(sum_i e_ji U_ji^T z~_i)``, all of them held fixed.

    Args:
        z: the capsules below as the data has them, before squashing.
        x: the capsules of this layer, squashed.
        back: ``U_ji``.
        e: coefficients of the way back.
    """
    with torch.no_grad():
        z_model = up(x, back, e)
        x_model = squash(down(z_model, back, e))
        pull, pull_model = 2 * _pull(z), 2 * _pull(z_model)
    phases = pull_model * up(x_model, back, e) - pull * up(x, back, e)
    return phases.sum((1, 2))


def falls_to(which: Int[Tensor, "batch"], capsules: int) -> Bool[Tensor, "batch capsules"]:
    """Marks the capsule of each picture; one_hot would look at the numbers on the host."""
    return which.unsqueeze(1) == torch.arange(capsules, device=which.device)


def gram(back: Back) -> Float[Tensor, "caps_out dim_out dim_out"]:
    """Gives ``U_j^T U_j`` of each capsule: by it squares of what a capsule paints need no picture of it."""
    return torch.einsum("ijod,ijoe->jde", back, back)


def best_alone(z: Lower, x: Upper, back: Back, share: float) -> Int[Tensor, "batch"]:
    """Finds the capsule that by itself paints each picture best, beside how it paints the others of the batch.

    Of the errors ``||z - e U_j x_j||^2``, standardised for each capsule over the batch, the least. By the errors
    themselves one capsule would soon win every picture, and the others would never learn to paint. No vote is written
    down: the square of ``U_j x_j`` needs a dim x dim matrix of each capsule alone.
    """
    # errors are differences of large numbers: not in half precision, whatever autocast says
    with torch.autocast(z.device.type, enabled=False):
        seen = torch.einsum("bio,ijod,bjd->bj", z, back, x)
        own = torch.einsum("bjd,jde,bje->bj", x, gram(back), x)
    error = z.square().sum((1, 2)).unsqueeze(1) + share * (share * own - 2 * seen)
    spread = error.std(0, correction=0).clamp(min=torch.finfo(error.dtype).tiny)
    return ((error - error.mean(0)) / spread).argmin(1)


def paint_alone(x: Upper, back: Back, share: float) -> Lower:
    """Gives the capsules below as one capsule paints them, the others of which are zero."""
    with torch.autocast(x.device.type, enabled=False):
        return share * torch.einsum("ijod,bjd->bio", back, x)
