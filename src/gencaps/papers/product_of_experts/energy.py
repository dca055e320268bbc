"""The energy of a layer of capsules, what follows from it, and its gradient; (Hauser, 2020), section 3.

Everything is a function of the capsules before squashing, ``z_j = sum_i c_ij W_ij x_i``, Eq. (3).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.papers.product_of_experts.spaces import log_odds
from gencaps.primitives.squash import length

Layer = Float[Tensor, "batch caps_out dim_out"]
Each = Float[Tensor, "batch caps_out"]
One = Float[Tensor, "batch"]


def energy(z: Layer, firing: Each) -> One:
    """Gives the energy of capsules with their firing: ``E = -sum_j log(||z_j||^2) ||x_j||``. (Hauser, 2020), Eq. (7).

    Args:
        z: capsules before squashing.
        firing: ``||x_j||``, 1 where a capsule fires and 0 where it does not.

    Note: departs from Eq. (7) where a capsule that is zero fires: the energy is large there, not infinite.
    """
    return -(firing * log_odds(z, 0)).sum(-1)


def log_joint(z: Layer, firing: Each) -> One:
    """Gives ``log P(x, ||x'||) + log Z = -E``, a product of experts. (Hauser, 2020), Eq. (8) and Eq. (9)."""
    return -energy(z, firing)


def log_marginal(z: Layer, line: int = 0) -> One:
    """Gives ``log P(x) + log Z = sum_j log(1 + ||z_j||^2)``, summed over all firing. (Hauser, 2020), Eq. (10).

    Where the last ``line`` numbers are not on the sphere, the odds of firing are those of ``spaces.log_odds``.
    """
    if line == 0:
        return torch.log1p(length(z).square()).sum(-1)
    return torch.nn.functional.softplus(log_odds(z, line), threshold=40).sum(-1)


def free_energy(z: Layer, line: int = 0) -> One:
    """Gives ``F(x) = -sum_j log(1 + ||z_j||^2)``, what Eq. (14) makes small on data. (Hauser, 2020), Eq. (10)."""
    return -log_marginal(z, line)


def conditional(z: Layer) -> Each:
    """Gives ``P(||x_j|| = 1 | x) = ||z_j||^2 / (1 + ||z_j||^2)``, each capsule by itself.

    (Hauser, 2020), Eq. (11) and Eq. (12); by Eq. (13) it is the length of the squashed capsule, from which it is
    computed here by another route: ``sigmoid(log ||z||^2)``, section 3.1.
    """
    return torch.sigmoid(log_odds(z, 0))


def gradient(
    x: Float[Tensor, "batch caps_in dim_in"], z: Layer, c: Float[Tensor, "batch caps_out caps_in"]
) -> Float[Tensor, "caps_out caps_in dim_out dim_in"]:
    """Gives one phase of the gradient, ``2 c_ij z_j x_i^T / (1 + ||z_j||^2)``, averaged over the batch.

    (Hauser, 2020), Eq. (17), and each of the two phases of Eq. (18). Training reaches the same numbers through
    autograd: the gradient of ``log_marginal`` with c and x held fixed.

    Note: departs from Eq. (15) and Eq. (16), each of which loses a minus; the two cancel.
    """
    pull = 2 * z / (1 + length(z).square().unsqueeze(-1))
    return torch.einsum("bji,bjo,bid->jiod", c, pull, x) / len(x)
