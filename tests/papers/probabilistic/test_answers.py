"""A scene behind the API: capsules of every layer, refining, explaining, and what is refused."""

from __future__ import annotations

import torch

from gencaps.api import Capsules
from tests.helpers import refused
from tests.papers.probabilistic.helpers import tiny


def test_capsules_of_every_layer_come_back_by_name() -> None:
    model = Capsules(tiny(turns=3))
    x = torch.rand(2, 1, 10, 10)
    for code in (model.encode(x), model.refine(x, 2)):
        assert code.objects.presence_logit.shape == (2, 3)
        assert code.parts.pose.shape == (2, 4, 2, 3)
        assert not code.objects.pose.requires_grad


def test_an_explanation_is_four_coloured_pictures_in_a_row() -> None:
    told = Capsules(tiny()).explain(torch.rand(2, 1, 10, 10))
    assert told.pictures.shape == (8, 3, 10, 10)
    assert told.columns == 4
    assert told.pictures[2].std(0).max() > 0.01  # coloured, not grey
    assert told.pictures.min() >= 0
    assert told.pictures.max() <= 1


def test_refined_reconstructions_are_nearer_and_bad_steps_are_refused() -> None:
    model, x = Capsules(tiny()), torch.rand(2, 1, 10, 10)
    before, after = ((model.reconstruct(x, refine=n).pictures - x).square().mean() for n in (0, 60))
    assert after < before
    refused(lambda: model.reconstruct(x, refine=-1), "refine is -1")
    refused(lambda: model.reconstruct(x, refine=3, sample=True), "choose one")
    refused(lambda: model.refine(x, 10**9), "refine is 1000000000")
