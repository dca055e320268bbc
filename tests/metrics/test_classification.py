"""Counts and shares, against numbers counted by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, recall_score

from gencaps.metrics.classification import (
    accuracy,
    attribute_accuracy,
    attribute_balanced_accuracy,
    balanced_accuracy,
    confusion,
    expected_calibration_error,
    majority_accuracy,
)
from tests.helpers import refused

TRUE = torch.tensor([0, 0, 0, 1, 1, 2])
TOLD = torch.tensor([0, 0, 1, 2, 2, 2])


def test_accuracy_is_the_share_told_right() -> None:
    assert accuracy(TOLD, TRUE) == 3 / 6
    assert accuracy(TRUE, TRUE) == 1.0
    assert accuracy((TRUE + 1) % 3, TRUE) == 0.0


def test_accuracy_of_many_pictures_is_exact() -> None:
    """A mean in float32 would be 0.33333334."""
    true = torch.zeros(30_003, dtype=torch.int64)
    told = torch.arange(30_003) % 3
    assert accuracy(told, true) == 10_001 / 30_003


def test_confusion_rows_are_true_and_columns_are_told() -> None:
    # of three 0s one was called 1; both 1s were called 2; the 2 was told right
    assert confusion(TOLD, TRUE, 3).tolist() == [[2, 1, 0], [0, 0, 2], [0, 0, 1]]


def test_confusion_keeps_classes_that_never_occur() -> None:
    table = confusion(torch.tensor([1]), torch.tensor([0]), 4)
    assert table.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    none = torch.tensor([], dtype=torch.int64)
    assert confusion(none, none, 2).tolist() == [[0, 0], [0, 0]]


def test_confusion_takes_bytes_without_overflow() -> None:
    """199 * 200 + 198 does not fit a byte."""
    table = confusion(torch.tensor([198], dtype=torch.uint8), torch.tensor([199], dtype=torch.uint8), 200)
    assert table.sum() == 1
    assert table[199, 198] == 1


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_confusion_agrees_with_counting_pairs(pairs: list[tuple[int, int]]) -> None:
    true, told = torch.tensor(pairs).T
    table = confusion(told, true, 5)
    assert all(table[t, p] == pairs.count((t, p)) for t in range(5) for p in range(5))
    assert torch.equal(table.sum(1), torch.bincount(true, minlength=5))
    assert torch.equal(table.sum(0), torch.bincount(told, minlength=5))
    assert table.trace() / len(pairs) == torch.tensor(accuracy(told, true))
    assert torch.equal(confusion(true, told, 5), table.T)


def test_attributes_are_judged_each_by_itself() -> None:
    true = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 1, 1]], dtype=torch.uint8)
    told = torch.tensor([[1, 1, 1], [1, 0, 0], [0, 1, 1], [1, 0, 1]])
    # the first is wrong once in four, the second always, the third never
    assert attribute_accuracy(told, true).tolist() == [0.75, 0.0, 1.0]


def test_balanced_accuracy_weighs_every_class_alike() -> None:
    # recalls 2/3, 0/2 and 1/1: their mean is 5/9, where the plain accuracy is 3/6
    assert balanced_accuracy(TOLD, TRUE, 3) == pytest.approx(5 / 9, abs=1e-15)
    # a class that never occurs has no recall and does not count
    assert balanced_accuracy(TOLD, TRUE, 7) == balanced_accuracy(TOLD, TRUE, 3)


def test_one_answer_for_all_is_worth_one_in_the_number_of_classes() -> None:
    true = torch.tensor([0] * 97 + [1, 2, 3])
    assert accuracy(torch.zeros_like(true), true) == 0.97
    assert balanced_accuracy(torch.zeros_like(true), true, 4) == 0.25


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
@pytest.mark.filterwarnings("ignore:y_pred contains classes", "ignore:A single label was found")
def test_balanced_accuracy_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    true, told = torch.tensor(pairs).T
    assert balanced_accuracy(told, true, 5) == pytest.approx(balanced_accuracy_score(true, told), abs=1e-14)


def test_balanced_accuracy_refuses_what_it_cannot_count() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    refused(lambda: balanced_accuracy(none, none, 3), "0 samples")
    refused(lambda: balanced_accuracy(TOLD, TRUE, 2), "judged set", "0 to 1")
    refused(lambda: balanced_accuracy(TOLD + 1, TRUE, 3), "predictions", "0 to 2")


def test_attribute_balance_is_the_mean_of_both_rates() -> None:
    true = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]], dtype=torch.uint8)
    told = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 1]])
    # (1/1 + 2/3) / 2; only there: 3/4; only absent: 3/4
    assert attribute_balanced_accuracy(told, true).tolist() == pytest.approx([5 / 6, 0.75, 0.75], abs=1e-15)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
def test_attribute_balance_is_the_mean_of_recalls_of_the_states_that_occur(seed: int, n: int) -> None:
    g = torch.Generator().manual_seed(seed)
    true, told = torch.randint(2, (2, n, 3), generator=g)
    ours = attribute_balanced_accuracy(told, true)
    for a in range(3):
        occur = true[:, a].unique().tolist()
        theirs = recall_score(true[:, a], told[:, a], labels=occur, average="macro")
        assert ours[a].item() == pytest.approx(theirs, abs=1e-14)
    # naming both states the other way round changes nothing
    assert torch.allclose(attribute_balanced_accuracy(1 - told, 1 - true), ours, atol=1e-15)


def test_attribute_balance_refuses_other_than_two_states() -> None:
    states = torch.tensor([[0, 1], [1, -1]])
    refused(lambda: attribute_balanced_accuracy(states.abs(), states), "judged set", "-1")
    refused(lambda: attribute_balanced_accuracy(states, states.abs()), "predictions", "-1")


def test_the_majority_is_that_of_the_training_part() -> None:
    train = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0]], dtype=torch.uint8)
    test = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 1]], dtype=torch.uint8)
    # says 1, 0, and 0 (even): right in 1/3, 2/3 and 1/3, though the test part's own majority would say 0, 0, 1
    assert majority_accuracy(train, test).tolist() == [1 / 3, 2 / 3, 1 / 3]


def test_a_majority_of_bytes_does_not_overflow() -> None:
    train = torch.ones(300, 1, dtype=torch.uint8)
    assert majority_accuracy(train, train).tolist() == [1.0]
    refused(lambda: majority_accuracy(train[:0], train), "training set", "0 samples")
    refused(lambda: majority_accuracy(train, train + 1), "test set", "0 to 1")


def test_calibration_error_by_hand() -> None:
    presence = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.5]], dtype=torch.float64)
    true = torch.tensor([0, 0, 0, 1])
    # two bins, (0, 0.5] and (0.5, 1]: |1 - 0.5| / 4 + |(1 + 0 + 1) - (0.9 + 0.8 + 0.7)| / 4 = 0.125 + 0.1
    assert expected_calibration_error(presence, true, bins=2) == pytest.approx(0.225, abs=1e-15)
    # one bin: |3 - 2.9| / 4
    assert expected_calibration_error(presence, true, bins=1) == pytest.approx(0.025, abs=1e-15)


def test_sure_and_right_is_calibrated_and_sure_and_wrong_is_not() -> None:
    sure = torch.eye(5)
    assert expected_calibration_error(sure, torch.arange(5)) == 0.0
    assert expected_calibration_error(sure, (torch.arange(5) + 1) % 5) == 1.0


def test_an_edge_belongs_to_the_bin_below_it() -> None:
    # 0.28 = 7/25 ends the 7th bin of 25 though 0.28 * 25 is above 7 in floating point; 0.27 shares that bin
    presence = torch.tensor([[0.28, 0.0], [0.27, 0.0]], dtype=torch.float64)
    # one bin: |1 - 0.55| / 2, where two bins would give (0.72 + 0.27) / 2
    assert expected_calibration_error(presence, torch.tensor([0, 1]), bins=25) == pytest.approx(0.225, abs=1e-15)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), bins=st.integers(1, 20))
def test_calibration_error_agrees_with_going_through_the_bins(seed: int, n: int, bins: int) -> None:
    g = torch.Generator().manual_seed(seed)
    presence, true = torch.rand(n, 3, generator=g), torch.randint(3, (n,), generator=g)
    sure, told = presence.double().max(1)
    expected = 0.0
    for m in range(bins):
        here = (sure > m / bins) & (sure <= (m + 1) / bins)
        if here.any():
            right = (told == true)[here].double().mean() - sure[here].mean()
            expected += right.abs().item() * int(here.sum()) / n
    assert expected_calibration_error(presence, true, bins) == pytest.approx(expected, abs=1e-13)


def test_calibration_error_refuses_what_is_no_presence() -> None:
    true = torch.tensor([0, 1])
    refused(lambda: expected_calibration_error(torch.tensor([[3.0, 0.1], [0.2, 0.1]]), true), "not logits")
    refused(lambda: expected_calibration_error(torch.full((2, 2), float("nan")), true), "not finite")
    refused(lambda: expected_calibration_error(torch.rand(2, 2), true, bins=0), "0 bins")
    refused(lambda: expected_calibration_error(torch.rand(2, 2), true + 1), "1 to 2")
