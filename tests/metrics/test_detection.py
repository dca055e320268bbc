"""The area under the ROC curve, against counting all pairs."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from gencaps.metrics.detection import auroc
from tests.helpers import refused

SCORES = st.lists(st.integers(-4, 4), min_size=1, max_size=25)


def test_auroc_by_hand() -> None:
    # pairs of {3, 1} and {2, 1, 0}: 3 beats all three; 1 loses to 2, ties with 1, beats 0: (3 + 0.5 + 1) / 6
    assert auroc(torch.tensor([3.0, 1.0]), torch.tensor([2.0, 1.0, 0.0])) == 4.5 / 6


def test_known_above_foreign_is_one_and_below_is_zero() -> None:
    low, high = torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0, 4.0])
    assert auroc(high, low) == 1.0
    assert auroc(low, high) == 0.0
    assert auroc(torch.zeros(3), torch.zeros(4)) == 0.5


@settings(max_examples=50, deadline=None)
@given(inside=SCORES, outside=SCORES)
def test_auroc_counts_pairs_with_half_a_point_for_ties(inside: list[int], outside: list[int]) -> None:
    s, t = torch.tensor(inside, dtype=torch.float32), torch.tensor(outside, dtype=torch.float64)
    points = sum((a > b) + 0.5 * (a == b) for a in inside for b in outside)
    assert auroc(s, t) == points / (len(inside) * len(outside))
    truth = [1] * len(inside) + [0] * len(outside)
    assert abs(auroc(s, t) - float(roc_auc_score(truth, inside + outside))) < 1e-12
    # the two sets change places; any increasing map leaves the order
    assert abs(auroc(s, t) + auroc(t, s) - 1) < 1e-15
    assert auroc(s.exp(), t.float().exp()) == auroc(s, t)


def test_auroc_of_many_scores_is_exact_and_small_in_memory() -> None:
    """All pairs would take 40 GB; float32 would lose count."""
    n = 100_000
    evens = torch.arange(n, dtype=torch.float64) * 2
    # 2 i stands above the i odd numbers 1, 3, ..., 2 i - 1: n (n - 1) / 2 pairs in all
    assert auroc(evens, evens + 1) == (n - 1) / (2 * n)


def test_auroc_refuses_no_scores_and_nan() -> None:
    some = torch.tensor([1.0, 2.0])
    refused(lambda: auroc(some[:0], some), "known set", "0 samples")
    refused(lambda: auroc(some, some[:0]), "foreign set", "0 samples")
    refused(lambda: auroc(some, some * float("nan")), "scores of the foreign set", "2 values")
