"""The semi-supervised test of (Jaiswal et al., 2018), section 5.4: labels spread over generated pictures."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gencaps.data.splits import permutation
from gencaps.metrics.classification import accuracy
from gencaps.metrics.neighbors import Neighbors, merged, nearest
from gencaps.metrics.spreading import UNLABELLED, predict_from, spread_over
from gencaps.reproduce.measures.probes import flat
from gencaps.reproduce.subject import Measured, Subject, sample

GENERATED = 50_000
LABELLED = {100: 50, 1_000: 25, 10_000: 10}
"""Labelled pictures, and the nearest points that label spreading then asks. Few labels want many: a generated picture
has few real ones among its nearest."""
ALPHA = 0.01
DRAWS = 10
"""Draws of labelled pictures: the same for every model, so that two models can be compared in pairs."""


def semi_supervised(subject: Subject) -> Measured:
    """Gives the test error with n labelled and 50,000 generated pictures, as a share, and that of the n alone.

    Raw pixels, scikit-learn's LabelSpreading with the knn kernel, predicted inductively on the test part; the mean over
    ten draws of labelled pictures that do not depend on the model. Its settings are the same for every model and were
    chosen on held-out training pictures of MNIST (docs/capsule_gan.md). Labelled pictures alone are asked for the
    nearest one, which reads those best.
    """
    train, test = subject.splits.train, subject.splits.test
    device = subject.model.device
    made = sample(subject.model, subject.count(GENERATED, 60), subject.noise("semi-supervised")).flatten(1)
    new, truth = flat(test.x, device), test.y.to(device)
    # among themselves generated pictures are neighbours whatever is labelled
    most = max(LABELLED.values())
    unlabelled = Unlabelled(made, nearest(made, made, most), nearest(new, made, most))
    values: dict[str, float] = {}
    for n, neighbors in LABELLED.items():
        found = []
        for draw in range(subject.count(DRAWS, 1)):
            chosen = labelled(len(train), n, draw)
            x, y = flat(train.x[chosen], device), train.y[chosen].to(device)
            found.append(errors(x, y, new, truth, len(train.names), unlabelled, neighbors))
        values[f"error-{n}"] = fmean(each.together for each in found)
        values[f"labelled-only-{n}"] = fmean(each.alone for each in found)
        values[f"difference-labelled-only-{n}"] = values[f"error-{n}"] - values[f"labelled-only-{n}"]
    return Measured(values)


def semi_supervised_paired(subject: Subject) -> Measured:
    """Gives the first run's error minus the second's over the same labelled draws, for each n, and their margins.

    The margins are in percentage points by which the first is below the second: the smallest and the largest over n.
    """
    ours, theirs = (semi_supervised(replace(subject, trained=(one,))).values for one in subject.trained)
    apart = {f"difference-{n}": ours[f"error-{n}"] - theirs[f"error-{n}"] for n in LABELLED}
    margins = [-100 * difference for difference in apart.values()]
    return Measured({**apart, "smallest_margin_points": min(margins), "largest_margin_points": max(margins)})


def labelled(pictures: int, n: int, draw: int) -> Int[Tensor, "n"]:
    """Draws the pictures whose labels are told, at most half of them; fixed by the draw alone."""
    return permutation(pictures, n, draw)[: min(n, pictures // 2)]


class Errors(NamedTuple):
    """Shares of test pictures told wrong."""

    together: float
    alone: float
    """By the nearest of the labelled pictures alone."""


class Unlabelled(NamedTuple):
    """Points without labels, and what is known of them."""

    points: Float[Tensor, "points features"]
    among: Neighbors
    """The nearest of them to each of them."""
    asked: Neighbors
    """The nearest of them to each test picture."""


def errors(
    x: Float[Tensor, "labelled features"],
    y: Int[Tensor, "labelled"],
    new: Float[Tensor, "test features"],
    truth: Int[Tensor, "test"],
    classes: int,
    others: Unlabelled,
    neighbors: int,
) -> Errors:
    """Gives the share of test pictures told wrong, with labels spread among the labelled points and the others.

    Beside it that of the labelled points alone.
    """
    n = len(x)
    few = min(neighbors, n)
    asked = nearest(new, x, few)
    alone = y[asked.ids[:, 0]]
    own = merged(nearest(x, x, few), nearest(x, others.points, neighbors), n, neighbors)
    theirs = merged(nearest(others.points, x, few), others.among, n, neighbors)
    known = torch.cat([y, torch.full((len(others.points),), UNLABELLED, dtype=y.dtype, device=y.device)])
    spread = spread_over(torch.cat([own.ids, theirs.ids]), known, classes, alpha=ALPHA)
    told = predict_from(spread, merged(asked, others.asked, n, neighbors).ids, known)
    return Errors(1 - accuracy(told.labels, truth), 1 - accuracy(alone, truth))
