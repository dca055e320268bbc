"""Use and purity of capsules, by hand."""

from __future__ import annotations

import torch

from gencaps.metrics.generation import purity
from gencaps.metrics.specialisation import in_use
from tests.helpers import refused


def test_use_counts_capsules_by_their_share() -> None:
    strongest = torch.tensor([0] * 98 + [1] + [3])
    assert in_use(strongest, 5) == 3  # a hundredth is enough
    assert in_use(strongest, 5, least=0.02) == 1


def test_purity_by_hand() -> None:
    strongest = torch.tensor([0, 0, 0, 2, 2, 2])
    y = torch.tensor([7, 7, 1, 4, 4, 4])
    assert purity(strongest, y) == 5 / 6
    assert purity(torch.zeros(4, dtype=torch.long), torch.arange(4)) == 1 / 4


def test_uneven_sets_are_refused() -> None:
    refused(lambda: purity(torch.zeros(3, dtype=torch.long), torch.zeros(2, dtype=torch.long)), "3", "2")
    refused(lambda: in_use(torch.zeros(0, dtype=torch.long), 4), "strongest")
