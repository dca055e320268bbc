"""How evenly capsules point in all directions, as those do that new ones are drawn from."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.papers.product_of_experts.spaces import as_drawn


def moment_gap(z: Float[Tensor, "batch capsules dim"], line: int = 0) -> Float[Tensor, ""]:
    """Gives how far each capsule's directions are from those of N(0, I), from which new capsules are drawn.

    ``||E d d^T - I||^2 / dim``, the mean over capsules, where d is a direction times the root of its numbers, and the
    last ``line`` numbers, which are not on the sphere, are taken as they are. Lengths play no part. (Hauser, 2020),
    section 4.2, draws from N(0, I); where the capsules of pictures point in few directions, most of what is drawn is
    like no picture. Each capsule is taken by itself: were all of them made independent, they could not all have a mean
    direction, and with it the half of the sphere that training visits would be gone.
    """
    d, dim = as_drawn(z, line), z.shape[-1]
    with torch.autocast(z.device.type, enabled=False):
        moment = torch.einsum("bjd,bje->jde", d, d) / len(d)
    return (moment - torch.eye(dim, device=z.device, dtype=z.dtype)).square().sum((1, 2)).mean() / dim
