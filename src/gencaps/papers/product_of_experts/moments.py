"""The second moment of capsules, beside that of the distribution that new ones are drawn from."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def moment_gap(z: Float[Tensor, "batch capsules dim"]) -> Float[Tensor, ""]:
    """Gives how far capsules are from ``E z z^T = I``: the mean square of what is over or missing, summed over a row.

    (Hauser, 2020), section 4.2, draws new capsules from N(0, I). Where the capsules of pictures lie along a few
    directions alone, most of what is drawn is like no picture.
    """
    flat = z.flatten(1)
    moment = flat.T @ flat / len(flat)
    return (moment - torch.eye(len(moment), device=z.device, dtype=z.dtype)).square().sum() / len(moment)
