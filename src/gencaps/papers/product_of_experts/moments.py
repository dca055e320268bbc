"""How evenly capsules point in all directions, as those do that new ones are drawn from."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.squash import direction


def moment_gap(z: Float[Tensor, "batch capsules dim"]) -> Float[Tensor, ""]:
    """Gives how far the capsules' directions are from those of N(0, I), in which new capsules are drawn.

    With ``d`` all directions of a picture in a row, times the root of dim: ``||E d d^T - I||^2`` over the length of d.
    Lengths play no part. (Hauser, 2020), section 4.2, draws from N(0, I); where the capsules of pictures
    point in a few directions alone, most of what is drawn is like no picture.
    """
    flat = z.shape[-1] ** 0.5 * direction(z).flatten(1)
    moment = flat.T @ flat / len(flat)
    return (moment - torch.eye(len(moment), device=z.device, dtype=z.dtype)).square().sum() / len(moment)
