"""How well labels are told, and how long training took."""

from __future__ import annotations

import torch

from gencaps.engine.evaluate import evaluate
from gencaps.metrics.classification import (
    attribute_accuracy,
    attribute_balanced_accuracy,
    balanced_accuracy,
    expected_calibration_error,
    majority_accuracy,
)
from gencaps.reproduce.subject import Measured, Subject
from gencaps.reproduce.training import training_seconds


def classification(subject: Subject) -> Measured:
    """Reads every test picture once."""
    test = subject.splits.test
    seen = evaluate(subject.model, test)
    assert seen.accuracy is not None
    assert seen.correct is not None
    assert seen.predicted is not None
    assert seen.presence is not None
    values = {
        "accuracy_percent": 100 * seen.accuracy,
        "error_percent": 100 * (seen.images - seen.correct) / seen.images,
        "balanced_percent": 100 * balanced_accuracy(seen.predicted, test.y, len(test.names)),
    }
    # presences that are lengths of capsules are no probabilities: they need not sum to one
    if bool(((seen.presence.sum(1) - 1).abs() < 1e-3).all()):
        values["calibration_error"] = expected_calibration_error(seen.presence, test.y)
    return Measured(values)


def attributes(subject: Subject) -> Measured:
    """Gives each attribute's accuracy in percent, their average, the balanced one and that of the majority rule."""
    train, test = subject.splits.train, subject.splits.test
    seen = evaluate(subject.model, test)
    assert seen.predicted is not None
    each = 100 * attribute_accuracy(seen.predicted, test.y)
    values = {dashed(name): value for name, value in zip(test.names, each.tolist(), strict=True)}
    return Measured(
        {
            **values,
            "average": each.mean().item(),
            "least": each.min().item(),
            "balanced": 100 * attribute_balanced_accuracy(seen.predicted, test.y).mean().item(),
            "majority": 100 * majority_accuracy(train.y, test.y).mean().item(),
        }
    )


def pairs(subject: Subject) -> Measured:
    """Gives the share of pictures whose two most present digits are not the right two, in percent (MultiMNIST)."""
    test = subject.splits.test
    seen = evaluate(subject.model, test)
    assert seen.presence is not None
    told = torch.zeros_like(test.y).scatter(1, seen.presence.topk(2).indices, 1)
    wrong = (told != test.y).any(1).double().mean().item()
    return Measured({"error_percent": 100 * wrong})


def dashed(name: str) -> str:
    """Writes an attribute's name as claims do: ``5-o-clock-shadow``."""
    return name.lower().replace("_", "-").replace(" ", "-")


def training(subject: Subject) -> Measured:
    """Gives the seconds of all epochs together, the compiler's among them."""
    seconds = sum(training_seconds(trained.run) for trained in subject.trained)
    return Measured({"seconds": seconds, "minutes": seconds / 60})
