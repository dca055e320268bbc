"""What is read off generated pictures, counted by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.cluster import contingency_matrix

from gencaps.metrics.generation import (
    class_shares,
    purity,
    rarest_share,
    read_as_asked,
    specialisation,
    spread,
    sure_share,
)
from tests.helpers import refused

READ = torch.tensor([0, 1, 1, 3, 3, 3, 3, 0])


def test_shares_by_hand() -> None:
    assert class_shares(READ, 4).tolist() == [0.25, 0.25, 0.0, 0.5]
    assert rarest_share(READ, 4) == 0.0
    assert rarest_share(READ[READ != 3], 2) == 0.5
    # a class beyond all that were read is never generated
    assert class_shares(READ, 6).tolist() == [0.25, 0.25, 0.0, 0.5, 0.0, 0.0]


@settings(max_examples=25, deadline=None)
@given(read=st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_shares_add_up_and_the_rarest_is_at_most_even(read: list[int]) -> None:
    told = torch.tensor(read, dtype=torch.uint8)
    assert class_shares(told, 5).tolist() == [read.count(k) / len(read) for k in range(5)]
    assert rarest_share(told, 5) == min(read.count(k) for k in range(5)) / len(read) <= 0.2


def test_read_as_asked_is_a_share_of_pictures() -> None:
    assert read_as_asked(READ, torch.tensor([0, 1, 2, 3, 3, 3, 0, 0])) == 6 / 8


def test_sure_is_strictly_above_the_threshold() -> None:
    p = torch.tensor([[0.95, 0.05], [0.1, 0.9], [0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    assert sure_share(p) == 0.5
    assert sure_share(p, 0.4) == 1.0
    assert sure_share(p, 1.0) == 0.0


def test_spread_by_hand() -> None:
    real = torch.tensor([[0.0, 0.0], [2.0, 4.0], [10.0, 0.0], [12.0, 0.0], [14.0, 0.0]])
    real_y = torch.tensor([0, 0, 1, 1, 1])
    generated = torch.tensor([[5.0, 5.0], [0.0, 1.0], [5.0, 5.0], [0.0, 3.0]])
    asked = torch.tensor([1, 0, 1, 0])
    # class 0: real 2 + 8 = 10, generated 0 + 2; class 1: real 4 + 0, generated all alike
    assert spread(generated, asked, real, real_y, 2).tolist() == [0.2, 0.0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.5, 2.0]))
def test_spread_is_one_for_equal_sets_and_grows_with_the_square(seed: int, scale: float) -> None:
    g = torch.Generator().manual_seed(seed)
    real, y = torch.randn(30, 4, generator=g, dtype=torch.float64), torch.arange(30) % 3
    order = torch.randperm(30, generator=g)
    same = spread(real[order], y[order], real, y, 3)
    assert torch.allclose(same, torch.ones(3, dtype=torch.float64), rtol=1e-12)
    # moved and turned pictures vary as before, twice the size varies fourfold
    turn = torch.linalg.qr(torch.randn(4, 4, generator=g, dtype=torch.float64)).Q
    assert torch.allclose(spread(real @ turn * scale + 3, y, real, y, 3), same * scale**2, rtol=1e-9)
    # an independent route: the trace of the covariance
    first = torch.cov(real[y == 1].T * scale).trace() / torch.cov(real[y == 1].T).trace()
    assert spread(real * scale, y, real, y, 3)[1].item() == pytest.approx(first.item(), rel=1e-12)


def test_spread_refuses_classes_it_cannot_compare() -> None:
    real, y = torch.randn(8, 3), torch.arange(8) % 2
    refused(lambda: spread(real[:3], y[:3], real, y, 2), "class 1 of the generated set", "1 sample and", "at least 2")
    refused(lambda: spread(real, y, real, y * 0, 2), "class 1 of the real set", "0 samples")
    refused(lambda: spread(real, y, torch.ones(8, 3), y, 2), "class 0", "same features")
    refused(lambda: spread(real[:, :2], y, real, y, 2), "2 features", "other 3")
    refused(lambda: spread(real * float("nan"), y, real, y, 2), "generated set", "24 values")
    refused(lambda: spread(real, y + 1, real, y, 2), "generated set", "1 to 2")


def test_specialisation_by_hand() -> None:
    # capsule 0 is three quarters class 2, capsule 1 all class 0, capsule 2 half 2; class 1 leads none
    told = specialisation(torch.tensor([[2, 2, 2, 1], [0, 0, 0, 0], [2, 1, 0, 2]]), 3)
    assert told.mean_top_share == 0.75
    assert told.leading == 2


def test_a_capsule_is_led_by_one_class() -> None:
    told = specialisation(torch.tensor([[0, 1, 2, 3]]), 4)
    assert told == (0.25, 1)
    # capsule 0 is led by 1 (tied with 3), and so is capsule 1
    assert specialisation(torch.tensor([[3, 1], [1, 1]]), 4).leading == 1


def test_capsules_that_draw_one_class_each_are_special() -> None:
    assert specialisation(torch.arange(10)[:, None].expand(10, 50), 10) == (1.0, 10)
    # 20 capsules that all draw everything alike
    assert specialisation(torch.arange(50).expand(20, 50) % 10, 10) == (0.1, 1)


def test_purity_by_hand() -> None:
    # groups {a a b}, {b b}, {c}: 2 + 2 + 1 of 6, whatever the groups are called
    true = torch.tensor([0, 0, 1, 1, 1, 2])
    assert purity(torch.tensor([9, 9, 9, -4, -4, 70]), true) == 5 / 6


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=40))
def test_purity_is_the_share_of_the_largest_cells(pairs: list[tuple[int, int]]) -> None:
    assigned, true = torch.tensor(pairs).T
    table = contingency_matrix(true.numpy(), assigned.numpy())
    assert purity(assigned, true) == table.max(0).sum() / len(pairs)
    # every picture its own group: pure; all in one: the commonest class's share
    assert purity(torch.arange(len(pairs)), true) == 1.0
    assert purity(torch.zeros_like(true), true) == class_shares(true, 4).max().item()


def test_readings_that_cannot_be_are_refused() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    refused(lambda: class_shares(none, 3), "0 samples")
    refused(lambda: rarest_share(READ, 3), "0 to 3", "3 classes")
    refused(lambda: read_as_asked(none, none), "0 samples")
    refused(lambda: sure_share(torch.tensor([[5.0, -2.0]])), "not logits")
    refused(lambda: specialisation(torch.tensor([[0, 4]]), 3), "0 to 4")
    refused(lambda: specialisation(torch.zeros(3, 0, dtype=torch.int64), 3), "no samples")
    refused(lambda: purity(none, none), "0 samples")
