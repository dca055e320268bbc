"""How well known pictures are told from foreign ones by a score."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.metrics.checks import refuse_shape, refuse_unusable


def auroc(inside: Float[Tensor, "n"], outside: Float[Tensor, "m"]) -> float:
    """Gives the probability that a known picture scores higher than a foreign one; a tie counts half.

    AUROC = (#{i, j: s_i > t_j} + 1/2 #{i, j: s_i = t_j}) / (n m), the area under the receiver operating
    characteristic (Hanley and McNeil, 1982), counted by sorting: memory grows with n + m.

    Args:
        inside: s, the scores of known pictures, higher where the model knows more.
        outside: t, the scores of pictures from another data set.
    """
    refuse_shape(inside, "n", "the scores of the known set")
    refuse_shape(outside, "m", "the scores of the foreign set")
    refuse_unusable(inside, "the known set", what="scores")
    refuse_unusable(outside, "the foreign set", what="scores")
    s, t = inside.detach().double(), outside.detach().double().sort().values
    below = torch.searchsorted(t, s).sum()
    not_above = torch.searchsorted(t, s, right=True).sum()
    # whole numbers up to the one division
    return int(below + not_above) / (2 * len(inside) * len(outside))
