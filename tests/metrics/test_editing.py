"""Edits as a judge sees them, and distances between styles, counted by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.metrics.editing import edited, mean_pairwise_distance, style_ratio
from tests.helpers import refused

BEFORE = torch.tensor([[0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 0], [0, 1, 0, 0]], dtype=torch.uint8)
AFTER = torch.tensor([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1], [0, 1, 0, 1]])


def test_an_edit_by_hand() -> None:
    # attribute 0 changed in three of four; of the others 1 stayed in 4/4, 2 in 3/4, 3 in 0/4
    told = edited(BEFORE, AFTER, 0)
    assert told.changed == 0.75
    assert told.kept_each.tolist() == [0.25, 1.0, 0.75, 0.0]
    assert told.kept == pytest.approx((1 + 0.75 + 0) / 3, abs=1e-15)


def test_what_the_target_entails_is_left_out() -> None:
    told = edited(BEFORE, AFTER, 0, entailed=(3,))
    assert told.kept == (1 + 0.75) / 2
    assert told.changed == 0.75
    # the target among the entailed ones is no harm
    assert edited(BEFORE, AFTER, 0, entailed={0, 3}).kept == told.kept


def test_no_edit_changes_nothing_and_keeps_everything() -> None:
    told = edited(BEFORE, BEFORE.long(), 2)
    assert (told.changed, told.kept) == (0.0, 1.0)


def test_edits_there_and_back_are_judged_alike() -> None:
    assert edited(BEFORE.long(), AFTER, 1).changed == edited(AFTER, BEFORE.long(), 1).changed == 0.0
    assert edited(BEFORE.long(), AFTER, 3).kept == edited(AFTER, BEFORE.long(), 3).kept


def test_edits_refuse_attributes_that_are_not_there() -> None:
    refused(lambda: edited(BEFORE, AFTER, 4), "no attribute 4", "0 to 3")
    refused(lambda: edited(BEFORE, AFTER, -1), "no attribute -1")
    refused(lambda: edited(BEFORE, AFTER, 0, entailed=(9,)), "no attribute 9")
    refused(lambda: edited(BEFORE, AFTER, 0, entailed=(1, 2, 3)), "no other to keep")
    refused(lambda: edited(BEFORE[:0], AFTER[:0], 0), "0 samples")


def test_distances_by_hand() -> None:
    # 3-4-5 triangle: (3 + 4 + 5) / 3; three equal draws: 0
    triangle = torch.tensor([[[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]], [[7.0, 7.0]] * 3])
    assert mean_pairwise_distance(triangle).tolist() == [4.0, 0.0]


def test_small_distances_far_from_the_origin_survive() -> None:
    """By |a|^2 + |b|^2 - 2 a.b, 1e16 + 1e16 - 2e16 would lose them; 30 draws would take that way by default."""
    draws = torch.zeros(1, 30, 2, dtype=torch.float64)
    draws[0, :, 0] = 1e8
    draws[0, 0, 1] = 0.5
    # one draw is 0.5 from 29 others: 29 of 435 pairs
    assert mean_pairwise_distance(draws).item() == pytest.approx(0.5 * 29 / 435, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), draws=st.integers(2, 8), scale=st.sampled_from([0.5, 2.0, 8.0]))
def test_distances_agree_with_pdist_and_styles_scale(seed: int, draws: int, scale: float) -> None:
    f = torch.randn(3, draws, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    expected = torch.stack([torch.pdist(picture).mean() for picture in f])
    assert torch.allclose(mean_pairwise_distance(f), expected, rtol=1e-12)
    # where a picture lies does not matter, how far its draws lie apart does
    assert style_ratio(f * scale + torch.randn(3, 1, 5), f) == pytest.approx(scale, rel=1e-12)
    assert style_ratio(f, f * scale) == pytest.approx(1 / scale, rel=1e-12)


def test_the_ratio_is_of_means_over_pictures() -> None:
    prior = torch.tensor([[[0.0], [6.0]], [[0.0], [2.0]]])
    posterior = torch.tensor([[[0.0], [3.0]], [[0.0], [1.0]]])
    posterior[1] *= 0
    # (6 + 2) / (3 + 0), though the second picture alone has no ratio
    assert style_ratio(prior, posterior) == pytest.approx(8 / 3, abs=1e-15)


def test_styles_refuse_draws_without_distance() -> None:
    draws = torch.randn(2, 3, 4)
    refused(lambda: style_ratio(draws, torch.ones(2, 3, 4)), "posterior", "same features")
    refused(lambda: mean_pairwise_distance(draws[:, :1]), "at least 2 draws")
    refused(lambda: mean_pairwise_distance(draws[:0]), "0 samples")
    refused(lambda: style_ratio(draws * float("inf"), draws), "not finite")
