"""How well labels are told: counts and shares on tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Integer
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import (
    refuse_improbable,
    refuse_labels,
    refuse_shape,
    refuse_uneven,
    refuse_unpaired,
    refuse_unusable,
)


def accuracy(predicted: Integer[Tensor, "n"], true: Integer[Tensor, "n"]) -> float:
    """Gives the share of pictures whose class was told right."""
    refuse_unpaired(predicted, true)
    refuse_unusable(true, "the judged set")
    return (predicted == true).double().mean().item()


def attribute_accuracy(
    predicted: Integer[Tensor, "n attributes"], true: Integer[Tensor, "n attributes"]
) -> Float[Tensor, "attributes"]:
    """Gives the share told right of each attribute."""
    refuse_unpaired(predicted, true, "n attributes")
    refuse_unusable(true, "the judged set")
    return (predicted == true).double().mean(0)


def confusion(
    predicted: Integer[Tensor, "n"], true: Integer[Tensor, "n"], classes: int
) -> Int[Tensor, "classes classes"]:
    """Counts pictures by true class (rows) and predicted class (columns)."""
    refuse_unpaired(predicted, true)
    refuse_labels(true, classes, "the judged set")
    refuse_labels(predicted, classes, "the predictions")
    pairs = true.long() * classes + predicted.long()
    return torch.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def balanced_accuracy(predicted: Integer[Tensor, "n"], true: Integer[Tensor, "n"], classes: int) -> float:
    """Gives the mean over the classes that occur of the share of each that was told right (its recall)."""
    table = confusion(predicted, true, classes).double()
    refuse_unusable(true, "the judged set")
    sizes = table.sum(1)
    occurs = sizes > 0
    return (table.diagonal()[occurs] / sizes[occurs]).mean().item()


def attribute_balanced_accuracy(
    predicted: Integer[Tensor, "n attributes"], true: Integer[Tensor, "n attributes"]
) -> Float[Tensor, "attributes"]:
    """Gives the mean of the true positive and the true negative rate of each attribute, read as 0 and 1.

    An attribute that has only one state in these pictures gets that state's rate.
    """
    refuse_unpaired(predicted, true, "n attributes")
    refuse_unusable(true, "the judged set")
    refuse_labels(true, 2, "the judged set")
    refuse_labels(predicted, 2, "the predictions")
    right = predicted == true
    states = torch.stack([true == 1, true == 0])
    sizes = states.sum(1).double()
    rates = (states & right).sum(1) / sizes.clamp(min=1)
    return rates.sum(0) / (sizes > 0).sum(0)


def majority_accuracy(
    train_y: Integer[Tensor, "n attributes"], test_y: Integer[Tensor, "m attributes"]
) -> Float[Tensor, "attributes"]:
    """Gives each attribute's accuracy of always saying what most training pictures have; 0 where they are even."""
    refuse_shape(train_y, "n attributes", "the labels of the training set")
    refuse_shape(test_y, "n attributes", "the labels of the test set")
    refuse_unusable(train_y, "the training set")
    refuse_unusable(test_y, "the test set")
    refuse_labels(train_y, 2, "the training set")
    refuse_labels(test_y, 2, "the test set")
    refuse_uneven(train_y[0], test_y[0], "the attributes of the training set", "those of the test set")
    majority = (2 * train_y.long().sum(0) > len(train_y)).long()
    return attribute_accuracy(majority.to(test_y.device).expand(test_y.shape), test_y)


def expected_calibration_error(
    presence: Float[Tensor, "n classes"], true: Integer[Tensor, "n"], bins: int = 15
) -> float:
    """Gives the mean gap between how sure the model is and how often it is right.

    ECE = sum_m |B_m| / n |acc(B_m) - conf(B_m)|, where B_m holds the pictures whose confidence, the largest
    presence, lies in ((m - 1) / M, m / M] (Guo et al., 2017), Eq. (3).

    Args:
        presence: each class's probability; rows need not add up to one.
        bins: M, of equal width.
    """
    if bins < 1:
        raise GencapsError(f"a calibration error cannot be taken over {bins} bins; give at least 1")
    refuse_improbable(presence, "the judged set")
    refuse_shape(true, "n", "the labels of the judged set")
    refuse_uneven(presence, true, "the presences of the judged set", "its labels")
    refuse_labels(true, presence.shape[1], "the judged set")
    confidence, told = presence.double().max(1)
    # whole numbers divided once: i * (1 / M) would miss the edges by rounding
    edges = torch.arange(1, bins, dtype=torch.float64, device=presence.device) / bins
    where = F.one_hot(torch.bucketize(confidence, edges), bins).double()
    gap = (told == true).double() - confidence
    # the bin's size cancels: |B| |acc - conf| = |sum of (right - confidence)|
    return (gap @ where).abs().sum().item() / len(true)
