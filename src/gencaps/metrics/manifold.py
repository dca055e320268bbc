"""Whether samples look real and whether they show all that is real, by the neighbours of each."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_unlike, refuse_unusable
from gencaps.metrics.neighbors import nearest, rows_held


class Manifold(NamedTuple):
    """Quality (precision, density) and diversity (recall, coverage); density alone may exceed 1."""

    precision: float
    recall: float
    density: float
    coverage: float


def manifold_scores(
    real: Float[Tensor, "n features_real"], generated: Float[Tensor, "m features_generated"], *, k: int = 5
) -> Manifold:
    """Compares two sets of features by balls that reach from each point to its k-th neighbour in its own set.

    With ``B(X_i)`` the ball around real sample i and ``B(Y_j)`` around generated sample j, edges included:
    precision is the share of generated samples in any ``B(X_i)``, recall the share of real samples in any
    ``B(Y_j)``: (Kynkaanniemi et al., 2019), Eq. (2, 3), where k = 3. Density is ``1 / (k m)`` times the pairs with
    ``Y_j`` in ``B(X_i)``, coverage the share of ``B(X_i)`` that hold any ``Y_j``: (Naeem et al., 2020),
    Eq. (3, 4), where k = 5. In float64 on the features' device, in parts of 256 MB.

    Args:
        real: features of real pictures.
        generated: features of generated ones, by the same network.
        k: which neighbour the balls reach to, a point not counted as its own.
    """
    if k < 1:
        raise GencapsError(f"k is {k}; give at least 1")
    refuse_unlike(real, generated)
    refuse_unusable(real, "the real set", least=k + 1)
    refuse_unusable(generated, "the generated set", least=k + 1)
    generated = generated.to(real.device)
    real_radius = nearest(real, real, k + 1).sq_distance[:, k]
    generated_radius = nearest(generated, generated, k + 1).sq_distance[:, k]

    centre = real.double().mean(0)
    x, y = real.double() - centre, generated.double() - centre
    y_sq = y.square().sum(1)
    # a point on the edge of its ball stays inside when the product of matrices rounds differently
    edge = 4 * (x.shape[1] + 8) * torch.finfo(x.dtype).eps * torch.maximum(x.square().sum(1).max(), y_sq.max())
    balls_holding = torch.zeros(len(y), dtype=torch.int64, device=x.device)
    recalled = covered = 0
    rows = rows_held(len(y), 8 + 8)  # a second one while it is worked on
    for x_part, radius in zip(x.split(rows), real_radius.split(rows), strict=True):
        sq_distance = x_part.square().sum(1, keepdim=True) + torch.addmm(y_sq, x_part, y.T, alpha=-2) - edge
        in_real = sq_distance <= radius[:, None]
        balls_holding += in_real.sum(0)
        covered += int(in_real.any(1).sum())
        recalled += int((sq_distance <= generated_radius).any(1).sum())
    return Manifold(
        precision=(balls_holding > 0).double().mean().item(),
        recall=recalled / len(x),
        density=balls_holding.sum().item() / (k * len(y)),
        coverage=covered / len(x),
    )
