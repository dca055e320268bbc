"""How well labels are told: counts and shares on tensors."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor


def accuracy(predicted: Integer[Tensor, "n"], true: Integer[Tensor, "n"]) -> float:
    """Gives the share of pictures whose class was told right."""
    return (predicted == true).double().mean().item()


def attribute_accuracy(
    predicted: Integer[Tensor, "n attributes"], true: Integer[Tensor, "n attributes"]
) -> Float[Tensor, "attributes"]:
    """Gives the share told right of each attribute."""
    return (predicted == true).double().mean(0)


def confusion(
    predicted: Integer[Tensor, "n"], true: Integer[Tensor, "n"], classes: int
) -> Int[Tensor, "classes classes"]:
    """Counts pictures by true class (rows) and predicted class (columns)."""
    pairs = true.long() * classes + predicted.long()
    return torch.bincount(pairs, minlength=classes * classes).reshape(classes, classes)
