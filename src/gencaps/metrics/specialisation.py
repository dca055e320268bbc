"""How far capsules that nobody named have specialised to classes."""

from __future__ import annotations

import torch
from jaxtyping import Integer
from torch import Tensor

from gencaps.metrics.checks import refuse_shape, refuse_uneven, refuse_unusable


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


def purity(strongest: Integer[Tensor, "n"], y: Integer[Tensor, "m"]) -> float:
    """Gives the share of pictures that belong to the most frequent class of their strongest capsule.

    Args:
        strongest: the index of each picture's strongest capsule.
        y: the classes.
    """
    refuse_shape(strongest, "n", "the strongest capsules")
    refuse_uneven(strongest, y, "the strongest capsules", "the labels")
    refuse_unusable(strongest, "the strongest capsules")
    classes = int(y.max()) + 1
    table = torch.bincount(strongest.long() * classes + y.long(), minlength=(int(strongest.max()) + 1) * classes)
    return table.view(-1, classes).amax(1).sum().item() / len(y)
