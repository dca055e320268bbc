"""Laws of the diversity of a batch."""

from __future__ import annotations

import pytest
import torch

from gencaps.primitives.diversity import batch_diversity


def test_diversity_is_the_ratio_of_mean_squared_distances_over_all_pairs() -> None:
    torch.manual_seed(0)
    made, real = torch.rand(5, 2, 3, 3), 2 * torch.rand(7, 2, 3, 3)
    ours, theirs = (torch.pdist(x.flatten(1)).square().mean() for x in (made, real))
    torch.testing.assert_close(batch_diversity(made, real), ours / theirs)


def test_diversity_by_hand() -> None:
    # pictures of one pixel: made 0 and 1 lie 1 apart, squared 1; real 0 and 2 lie 2 apart, squared 4
    made, real = torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0])
    assert batch_diversity(made[:, None, None, None], real[:, None, None, None]).item() == pytest.approx(1 / 4)


def test_diversity_of_real_against_real_is_one_in_expectation() -> None:
    torch.manual_seed(0)
    found = [batch_diversity(torch.rand(64, 1, 8, 8), torch.rand(64, 1, 8, 8)) for _ in range(50)]
    assert torch.stack(found).mean().item() == pytest.approx(1.0, abs=0.01)


def test_diversity_of_a_collapsed_batch_is_zero_and_of_one_on_two_modes_is_not() -> None:
    torch.manual_seed(0)
    real = torch.rand(64, 1, 8, 8)
    assert batch_diversity(real[:1].expand(64, -1, -1, -1), real).item() == 0
    assert 0.3 < batch_diversity(real[:2].repeat(32, 1, 1, 1), real).item() < 0.7


def test_real_pictures_that_are_all_the_same_are_nothing_to_compare_with() -> None:
    same = torch.ones(4, 1, 2, 2)
    assert batch_diversity(torch.rand(4, 1, 2, 2), same).item() == 1
    assert batch_diversity(same, same).item() == 1


def test_no_gradient_runs_through_diversity() -> None:
    made = torch.rand(4, 1, 2, 2, requires_grad=True)
    assert not batch_diversity(made, torch.rand(4, 1, 2, 2)).requires_grad
