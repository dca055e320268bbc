"""Counts and shares, against numbers counted by hand."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.metrics.classification import accuracy, attribute_accuracy, confusion

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
