"""How far capsules that nobody named have specialised to classes."""

from __future__ import annotations

import torch
from jaxtyping import Integer
from torch import Tensor

from gencaps.metrics.checks import refuse_shape, refuse_unusable


def in_use(strongest: Integer[Tensor, "n"], capsules: int, least: float = 0.01) -> int:
    """Counts the capsules that are the strongest of at least a share of the pictures.

    Args:
        strongest: the index of each picture's strongest capsule.
        capsules: how many there are.
        least: the share.
    """
    refuse_shape(strongest, "n", "the strongest capsules")
    refuse_unusable(strongest, "the strongest capsules")
    counts = torch.bincount(strongest, minlength=capsules)
    return int((counts >= least * len(strongest)).sum())
