"""What metrics refuse, and in which words."""

from __future__ import annotations

import pytest
import torch

from gencaps.metrics.checks import refuse_improbable, refuse_labels, refuse_unlike, refuse_unusable
from tests.helpers import refused

INF, NAN = float("inf"), float("nan")


def test_every_value_that_is_not_finite_is_counted() -> None:
    bad = torch.tensor([[1.0, NAN], [INF, 2.0], [-INF, 0.0]])
    refused(lambda: refuse_unusable(bad, "the real set"), "the features of the real set hold 3 values that are not")
    refused(lambda: refuse_unusable(bad[:1], "the real set"), "hold 1 value that is not finite")
    refused(lambda: refuse_unusable(bad, "the real set", what="scores"), "the scores of the real set")


def test_the_least_number_of_samples_is_allowed_and_one_fewer_refused() -> None:
    refuse_unusable(torch.zeros(10, 2), "the real set", 10)
    few = "the real set has 9 samples and this metric needs at least 10"
    refused(lambda: refuse_unusable(torch.zeros(9, 2), "the real set", 10), few)
    refused(lambda: refuse_unusable(torch.zeros(1, 2), "the real set", 2), "has 1 sample and")
    refused(lambda: refuse_unusable(torch.zeros(0, 2), "the real set"), "0 samples", "at least 1")


def test_whole_numbers_and_any_rank_are_usable() -> None:
    refuse_unusable(torch.tensor([1, 2]), "the real set", 2)
    refuse_unusable(torch.zeros(2, 3, 4, 5), "the real set", 2)


def test_sets_of_one_width_are_alike() -> None:
    refuse_unlike(torch.zeros(3, 4), torch.zeros(7, 4))
    refused(lambda: refuse_unlike(torch.zeros(3, 4), torch.zeros(3, 5)), "4 features", "other 5", "same network")


@pytest.mark.parametrize("bad", [-1, 3])
def test_labels_run_from_zero_to_one_below_the_classes(bad: int) -> None:
    refuse_labels(torch.tensor([0, 2]), 3, "the test set")
    refuse_labels(torch.zeros(0, dtype=torch.int64), 3, "the test set")
    refused(lambda: refuse_labels(torch.tensor([0, 2, bad]), 3, "the test set"), "test set", str(bad), "0 to 2")


def test_labels_need_a_class() -> None:
    refused(lambda: refuse_labels(torch.tensor([0]), 0, "the test set"), "0 classes")


def test_presences_lie_between_nothing_and_one_up_to_rounding() -> None:
    refuse_improbable(torch.tensor([[0.0, 1.0 + 1e-7]]), "the test set")
    refused(lambda: refuse_improbable(torch.tensor([[0.0, 1.5]]), "the test set"), "1.5", "not logits")
    refused(lambda: refuse_improbable(torch.tensor([[-0.25, 1.0]]), "the test set"), "-0.25")
    refused(lambda: refuse_improbable(torch.tensor([[NAN, 1.0]]), "the test set"), "presences", "not finite")
