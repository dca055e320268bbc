"""Bad input as a user gives it, where no jaxtyping stands before the metrics."""

from __future__ import annotations

import math
from collections.abc import Callable

import jaxtyping
import pytest
import torch

from gencaps.metrics.adversarial import generative_adversarial_metric, verdict
from gencaps.metrics.classification import (
    accuracy,
    attribute_accuracy,
    attribute_balanced_accuracy,
    balanced_accuracy,
    confusion,
    expected_calibration_error,
    majority_accuracy,
)
from gencaps.metrics.detection import auroc
from gencaps.metrics.editing import edited, mean_pairwise_distance
from gencaps.metrics.frechet import frechet_distance, moments
from gencaps.metrics.generation import class_shares, purity, read_as_asked, specialisation, spread, sure_share
from gencaps.metrics.kernel_distance import kernel_distance
from gencaps.metrics.manifold import manifold_scores
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.rotation import rotation_sweep
from gencaps.metrics.spreading import spread_labels
from tests.helpers import refused

Y = torch.arange(20) % 10
X = torch.arange(60.0).reshape(20, 3).sin()
A = torch.arange(80).reshape(20, 4) % 2
P = X.abs()
PICTURES = torch.zeros(20, 1, 4, 4)
SCORES = torch.linspace(0.1, 0.9, 20)


@pytest.fixture(autouse=True)
def _as_users_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize(
    ("call", "a", "b"),
    [
        (lambda: accuracy(Y, Y[:7]), "(20,)", "(7,)"),
        (lambda: accuracy(Y, Y[:1]), "(20,)", "(1,)"),
        (lambda: balanced_accuracy(Y, Y[:7], 10), "(20,)", "(7,)"),
        (lambda: confusion(Y[:1], Y, 10), "(1,)", "(20,)"),
        (lambda: attribute_accuracy(A, A[:7]), "(20, 4)", "(7, 4)"),
        (lambda: attribute_accuracy(A[:, :1], A), "(20, 1)", "(20, 4)"),
        (lambda: attribute_balanced_accuracy(A, A[:7]), "(20, 4)", "(7, 4)"),
        (lambda: attribute_balanced_accuracy(A, A[:, :1]), "(20, 4)", "(20, 1)"),
        (lambda: majority_accuracy(A, A[:, :3]), "(4,)", "(3,)"),
        (lambda: majority_accuracy(A[:, :1], A), "(1,)", "(4,)"),
        (lambda: expected_calibration_error(P, Y[:7] % 3), "(20, 3)", "(7,)"),
        (lambda: expected_calibration_error(P, Y[:1]), "(20, 3)", "(1,)"),
        (lambda: read_as_asked(Y, Y[:1]), "(20,)", "(1,)"),
        (lambda: purity(Y, Y[:7]), "(20,)", "(7,)"),
        (lambda: spread(X, Y[:7], X, Y, 10), "generated set", "(7,)"),
        (lambda: spread(X, Y, X, Y[:7], 10), "real set", "(7,)"),
        (lambda: edited(A, A[:7], 0), "(20, 4)", "(7, 4)"),
        (lambda: edited(A, A[:, :1], 0), "(20, 4)", "(20, 1)"),
        (lambda: rotation_sweep(lambda x: x[:, 0, 0, 0].long(), PICTURES, Y[:7]), "(20, 1, 4, 4)", "(7,)"),
        (lambda: LinearProbe.fit(X, Y[:5], 10), "(20, 3)", "(5,)"),
        (lambda: generative_adversarial_metric(SCORES, SCORES, SCORES, SCORES[:7]), "(20,)", "(7,)"),
    ],
)
def test_what_belongs_together_is_equally_many(call: Callable[[], object], a: str, b: str) -> None:
    refused(call, a, b, "as many")


@pytest.mark.parametrize(
    ("call", "given", "wanted"),
    [
        (lambda: auroc(SCORES[:6].reshape(3, 2), SCORES), "known set have the shape (3, 2)", "(n)"),
        (lambda: auroc(SCORES, SCORES[:6].reshape(3, 2)), "foreign set have the shape (3, 2)", "(m)"),
        (lambda: accuracy(Y[0], Y[0]), "()", "(n)"),
        (lambda: accuracy(A, A), "(20, 4)", "(n)"),
        (lambda: attribute_accuracy(Y, Y), "(20,)", "(n, attributes)"),
        (lambda: majority_accuracy(Y % 2, A), "training set have the shape (20,)", "(n, attributes)"),
        (lambda: majority_accuracy(A, Y % 2), "test set have the shape (20,)", "(n, attributes)"),
        (lambda: expected_calibration_error(SCORES, Y), "(20,)", "(n, classes)"),
        (lambda: expected_calibration_error(P, A), "(20, 4)", "(n)"),
        (lambda: class_shares(A, 2), "(20, 4)", "(n)"),
        (lambda: sure_share(SCORES), "(20,)", "(n, classes)"),
        (lambda: spread(X, A, X, Y, 10), "(20, 4)", "(n)"),
        (lambda: specialisation(Y, 10), "(20,)", "(capsules, samples)"),
        (lambda: mean_pairwise_distance(X), "(20, 3)", "(pictures, draws, features)"),
        (lambda: moments(SCORES), "(20,)", "(n, features)"),
        (lambda: frechet_distance(SCORES, X), "one set have the shape (20,)", "(n, features)"),
        (lambda: frechet_distance(PICTURES, PICTURES), "(20, 1, 4, 4)", "(n, features)"),
        (lambda: kernel_distance(X, SCORES), "other set have the shape (20,)", "(n, features)"),
        (lambda: manifold_scores(PICTURES, PICTURES), "(20, 1, 4, 4)", "(n, features)"),
        (lambda: rotation_sweep(lambda x: Y, X, Y), "(20, 3)", "(n, channels, height, width)"),
        (lambda: rotation_sweep(lambda x: Y, PICTURES, A), "(20, 4)", "(n)"),
        (lambda: LinearProbe.fit(SCORES, Y, 10), "(20,)", "(n, features)"),
        (lambda: LinearProbe.fit(X, A, 2), "(20, 4)", "(n)"),
        (lambda: spread_labels(SCORES, Y, 10), "(20,)", "(n, features)"),
        (lambda: spread_labels(X, A, 2), "(20, 4)", "(n)"),
        (lambda: generative_adversarial_metric(P, SCORES, SCORES, SCORES), "(20, 3)", "(n)"),
    ],
)
def test_a_shape_is_refused_by_the_one_that_is_wanted(call: Callable[[], object], given: str, wanted: str) -> None:
    refused(call, given, f"give {wanted}")


@pytest.mark.parametrize(
    "call",
    [
        lambda: accuracy(SCORES, Y),
        lambda: confusion(Y, Y.double(), 10),
        lambda: purity(SCORES, Y),
        lambda: edited(A.float(), A, 0),
        lambda: class_shares(SCORES, 10),
        lambda: spread(X, Y.float(), X, Y, 10),
        lambda: rotation_sweep(lambda x: Y, PICTURES, Y.float()),
        lambda: LinearProbe.fit(X, Y.float(), 10),
        lambda: spread_labels(X, Y.float(), 10),
    ],
)
def test_labels_are_whole_numbers(call: Callable[[], object]) -> None:
    refused(call, "torch.float", "whole numbers")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: confusion(Y, Y, 3), ("judged set", "0 to 9", "give 0 to 2")),
        (lambda: confusion(Y, Y % 3, 3), ("predictions", "0 to 9", "give 0 to 2")),
        (lambda: confusion(Y - 1, Y, 10), ("predictions", "-1 to 8")),
        (lambda: confusion(Y, Y, 0), ("0 classes",)),
        (lambda: purity(Y, Y - 1), ("label -1", "leave")),
    ],
)
def test_labels_are_among_the_classes(call: Callable[[], object], words: tuple[str, ...]) -> None:
    refused(call, *words)


@pytest.mark.parametrize("metric", [accuracy, attribute_accuracy])
def test_the_accuracy_of_no_picture_is_refused(metric: Callable[..., object]) -> None:
    none = (A if metric is attribute_accuracy else Y)[:0]
    refused(lambda: metric(none, none), "judged set has 0 samples")


@pytest.mark.parametrize("threshold", [5.0, -0.1, math.nan])
def test_a_threshold_is_a_probability(threshold: float) -> None:
    refused(lambda: sure_share(P, threshold), f"{threshold:g}", "from 0 to 1")


@pytest.mark.parametrize(
    "given", [(math.nan, 1.0), (1.2, math.nan), (-0.5, 1.0), (1.2, 1.0, -0.01), (1.2, 1.0, math.nan)]
)
def test_a_verdict_needs_ratios_and_a_tolerance(given: tuple[float, ...]) -> None:
    refused(lambda: verdict(*given), "no verdict", "at least 0")
