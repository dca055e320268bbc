"""What a judge reads off generated pictures: which classes, how surely, how varied."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import (
    refuse_improbable,
    refuse_labels,
    refuse_shape,
    refuse_uneven,
    refuse_unlike,
    refuse_unpaired,
    refuse_unusable,
)
from gencaps.metrics.classification import accuracy


def _counts(read: Integer[Tensor, "groups samples"], classes: int) -> Int[Tensor, "groups classes"]:
    """Counts how often each class is read in each row."""
    row = torch.arange(len(read), device=read.device)[:, None] * classes
    return torch.bincount((row + read.long()).flatten(), minlength=len(read) * classes).reshape(len(read), classes)


def class_shares(read: Integer[Tensor, "n"], classes: int) -> Float[Tensor, "classes"]:
    """Gives the share of the pictures that is read as each class."""
    refuse_shape(read, "n", "the classes read")
    refuse_unusable(read, "the generated set")
    refuse_labels(read, classes, "the generated set")
    return _counts(read[None], classes)[0].double() / len(read)


def rarest_share(read: Integer[Tensor, "n"], classes: int) -> float:
    """Gives the share of the class that is read least: 0 where one is never generated."""
    return class_shares(read, classes).min().item()


def read_as_asked(read: Integer[Tensor, "n"], asked: Integer[Tensor, "n"]) -> float:
    """Gives the share of pictures that is read as the class asked for."""
    refuse_unpaired(read, asked, names=("the classes read", "those asked for"))
    refuse_unusable(read, "the generated set")
    return accuracy(read, asked)


def sure_share(probabilities: Float[Tensor, "n classes"], threshold: float = 0.9) -> float:
    """Gives the share of pictures to one of whose classes the judge gives more than the threshold."""
    if not 0 <= threshold <= 1:
        raise GencapsError(f"a threshold of {threshold:g} is no probability; give one from 0 to 1")
    refuse_improbable(probabilities, "the generated set")
    return (probabilities.double().amax(1) > threshold).double().mean().item()


def _total_variance(
    features: Float[Tensor, "n features"], y: Integer[Tensor, "n"], classes: int, name: str
) -> Float[Tensor, "classes"]:
    """Gives for each class the unbiased variance summed over the features."""
    refuse_unusable(features, name)
    refuse_shape(y, "n", f"the labels of {name}")
    refuse_uneven(features, y, f"the features of {name}", "its labels")
    refuse_labels(y, classes, name)
    f, y, total = features.detach().double(), y.to(features.device), []
    for k in range(classes):
        of_class = f[y == k]
        refuse_unusable(of_class, f"class {k} of {name}", least=2)
        total.append(of_class.var(0).sum())
    return torch.stack(total)


def spread(
    generated: Float[Tensor, "n features"],
    asked: Integer[Tensor, "n"],
    real: Float[Tensor, "m features_real"],
    real_y: Integer[Tensor, "m"],
    classes: int,
) -> Float[Tensor, "classes"]:
    """Gives for each class how varied generated pictures are beside real ones.

    tr Cov(generated | asked = k) / tr Cov(real | y = k), on the judge's features: 1 where they vary alike,
    0 where every picture of a class is the same.
    """
    refuse_unlike(generated, real)
    ours = _total_variance(generated, asked, classes, "the generated set")
    theirs = _total_variance(real, real_y, classes, "the real set")
    same = (theirs == 0).nonzero().flatten().tolist()
    if same:
        raise GencapsError(f"the real pictures of class {same[0]} all have the same features; pass other pictures")
    return ours / theirs.to(ours.device)


class Specialisation(NamedTuple):
    """How far capsules draw one class each."""

    mean_top_share: float
    """Mean over the capsules of the share of the class read most often among a capsule's samples."""
    leading: int
    """Classes that are the one read most often of at least one capsule."""


def specialisation(read: Integer[Tensor, "capsules samples"], classes: int) -> Specialisation:
    """Tells how far each capsule's samples are read as one class, and how many classes lead a capsule.

    A capsule is led by one class: by the lowest where several are read equally often.
    """
    refuse_shape(read, "capsules samples", "the classes read")
    refuse_unusable(read, "the set of capsules")
    refuse_labels(read, classes, "the generated set")
    samples = read.shape[1]
    if not samples:
        raise GencapsError("the capsules have no samples; draw at least 1 from each")
    counts = _counts(read, classes)
    share = (counts.amax(1).double() / samples).mean().item()
    # breaks ties by the class: argmax promises no order
    order = classes - 1 - torch.arange(classes, device=read.device)
    return Specialisation(share, len((counts * classes + order).argmax(1).unique()))


def purity(assigned: Integer[Tensor, "n"], true: Integer[Tensor, "m"]) -> float:
    """Gives the share told right if each group said the class most frequent in it.

    1/n sum_g max_k #{i: assigned_i = g, true_i = k} (Manning et al., 2008, Eq. 16.1); groups may have any numbers.
    """
    refuse_unpaired(assigned, true, names=("the groups", "the labels"))
    refuse_unusable(assigned, "the grouped set")
    if int(true.min()) < 0:
        raise GencapsError(f"label {int(true.min())} is no class; leave pictures without a label out of both")
    groups, group = assigned.long().unique(return_inverse=True)
    classes, label = true.long().unique(return_inverse=True)
    pairs = torch.bincount(group * len(classes) + label, minlength=len(groups) * len(classes))
    return int(pairs.reshape(len(groups), len(classes)).amax(1).sum()) / len(assigned)
