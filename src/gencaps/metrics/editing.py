"""Whether an edit changed what it should and nothing else, and in how many ways."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_shape, refuse_unpaired, refuse_unusable


class Edited(NamedTuple):
    """What a judge saw of an edit."""

    changed: float
    """Share of pictures whose target attribute reads differently after."""
    kept: float
    """Mean of ``kept_each`` over the attributes that should not change."""
    kept_each: Float[Tensor, "attributes"]
    """Share of pictures, for each attribute (the target too), that reads the same after."""


def edited(
    before: Integer[Tensor, "n attributes"],
    after: Integer[Tensor, "n attributes"],
    target: int,
    entailed: Collection[int] = (),
) -> Edited:
    """Compares a judge's readings of the edited pictures with those of the unedited reconstructions.

    Args:
        before: attributes read off the reconstructions, as 0 and 1.
        after: the same off the edited pictures.
        target: the attribute that was edited.
        entailed: attributes that change with it by nature (Male: beard, ...), left out of ``kept``.
    """
    refuse_unpaired(before, after, "n attributes", ("the readings before the edit", "those after"))
    refuse_unusable(before, "the edited set", what="readings")
    attributes = before.shape[1]
    for one in (target, *entailed):
        if not 0 <= one < attributes:
            raise GencapsError(f"there is no attribute {one}; the judge reads 0 to {attributes - 1}")
    others = [one for one in range(attributes) if one != target and one not in entailed]
    if not others:
        raise GencapsError(
            f"an edit of attribute {target} leaves no other to keep; name fewer of the {attributes} as entailed"
        )
    kept_each = (before == after).double().mean(0)
    changed = (before[:, target] != after[:, target]).double().mean().item()
    return Edited(changed, kept_each[others].mean().item(), kept_each)


def mean_pairwise_distance(features: Float[Tensor, "pictures draws features"]) -> Float[Tensor, "pictures"]:
    """Gives the mean Euclidean distance between two different draws of each picture."""
    refuse_shape(features, "pictures draws features", "the features of the draws")
    refuse_unusable(features, "the set of draws")
    draws = features.shape[1]
    if draws < 2:
        raise GencapsError(f"distances between draws need at least 2 draws a picture and there is {draws}; draw more")
    f = features.detach().double()
    # by differences: the way over products loses small distances to cancellation
    distance = torch.cdist(f, f, compute_mode="donot_use_mm_for_euclid_dist")
    return distance.sum((1, 2)) / (draws * (draws - 1))


def style_ratio(
    prior: Float[Tensor, "pictures draws features"], posterior: Float[Tensor, "pictures draws features"]
) -> float:
    """Gives how many times further apart the styles drawn from the prior are than those from the posterior.

    Mean pairwise distance of the judge's features, over all pictures, of prior over posterior draws of the
    edited capsule, every other capsule at its mean.
    """
    near = mean_pairwise_distance(posterior).mean().item()
    if near == 0:
        raise GencapsError("all draws from the posterior have the same features; draw its noise anew for each")
    return mean_pairwise_distance(prior).mean().item() / near
