"""The semi-supervised test of (Jaiswal et al., 2018), section 5.4: labels spread over generated pictures."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gencaps.data.splits import permutation
from gencaps.metrics.classification import accuracy
from gencaps.metrics.spreading import UNLABELLED, predict_labels, spread_labels
from gencaps.reproduce.subject import Measured, Subject, sample

GENERATED = 50_000
LABELLED = (100, 1_000, 10_000)
DRAWS = 10
"""Draws of labelled pictures: the same for every model, so that two models can be compared in pairs."""


def semi_supervised(subject: Subject) -> Measured:
    """Gives the test error with n labelled and 50,000 generated pictures, as a share, and that of the n alone.

    Raw pixels, scikit-learn's defaults for LabelSpreading with the knn kernel (7 neighbours, alpha 0.2), predicted
    inductively on the test part; the mean over ten draws of labelled pictures that do not depend on the model.
    """
    train, test = subject.splits.train, subject.splits.test
    device = subject.model.device
    made = sample(subject.model, subject.count(GENERATED, 60), subject.noise("semi-supervised")).flatten(1)
    new, truth = _flat(test.x, device), test.y.to(device)
    values: dict[str, float] = {}
    for n in LABELLED:
        errors, alone = [], []
        for draw in range(subject.count(DRAWS, 1)):
            chosen = labelled(len(train), n, draw)
            x, y = _flat(train.x[chosen], device), train.y[chosen].to(device)
            errors.append(error(torch.cat([x, made]), y, new, truth, len(train.names)))
            alone.append(error(x, y, new, truth, len(train.names)))
        values[f"error-{n}"] = sum(errors) / len(errors)
        values[f"labelled-only-{n}"] = sum(alone) / len(alone)
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


def error(
    x: Float[Tensor, "points features"],
    y: Int[Tensor, "labelled"],
    new: Float[Tensor, "test features"],
    truth: Int[Tensor, "test"],
    classes: int,
) -> float:
    """Spreads the labels of the first points over the others and gives the share of test pictures told wrong."""
    known = torch.full((len(x),), UNLABELLED, dtype=torch.int64, device=x.device)
    known[: len(y)] = y
    neighbors = min(7, len(x))
    told = predict_labels(spread_labels(x, known, classes, neighbors=neighbors), x, known, new, neighbors=neighbors)
    return 1 - accuracy(told.labels, truth)


def _flat(x: Tensor, device: torch.device) -> Float[Tensor, "n features"]:
    return x.to(device).flatten(1).float().div(255)
