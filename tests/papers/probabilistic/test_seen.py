"""New scenes are drawn with the poses that training saw."""

from __future__ import annotations

import torch

from gencaps.model import PictureInfo, Step
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.model import ProbabilisticCapsules
from gencaps.papers.probabilistic.seen import SeenPoses
from gencaps.primitives.noise import Noise
from tests.helpers import refused


def test_draws_have_the_mean_and_the_covariance_of_what_was_seen() -> None:
    torch.manual_seed(0)
    seen, mixing = SeenPoses(2), 0.3 * torch.randn(2, 6, 6)
    mean = torch.tensor([[[1.0, 0, 0.5], [0, 1, -0.5]], [[-1.0, 0, 0], [0, -1, 2]]])
    for _ in range(400):
        flat = torch.einsum("ixy,biy->bix", mixing, torch.randn(64, 2, 6))
        pose = mean + flat.unflatten(2, (2, 3))
        # what is hardly there hardly counts: the other object's poses are far off
        share = (torch.rand(64, 1) < 0.25).float()
        share = torch.cat([share, 1 - share], 1)
        pose = torch.where(share[..., None, None] > 0, pose, torch.full_like(pose, 100.0))
        seen.see(pose, share)
    drawn = seen.draw(20_000, Noise(0, "cpu")).flatten(2)
    assert (drawn.mean(0) - mean.flatten(1)).abs().max() < 0.08
    for place in range(2):
        wanted = mixing[place] @ mixing[place].T
        assert (torch.cov(drawn[:, place].T) - wanted).abs().max() < 0.15 * wanted.abs().max()


def test_an_object_that_was_seen_once_can_be_drawn() -> None:
    """Its covariance is nothing, and the difference of two large numbers."""
    for size in (0.5, 10.0):
        torch.manual_seed(0)
        seen, pose = SeenPoses(3), size * torch.randn(1, 3, 2, 3)
        for step in range(100):
            share = torch.tensor([[1.0, 0.0, 1e-6]]) if step == 0 else torch.zeros(1, 3)
            seen.see(pose, share)
        drawn = seen.draw(200, Noise(0, "cpu"))
        assert drawn.isfinite().all()
        assert (drawn[:, [0, 2]] - pose[:, [0, 2]]).abs().max() < 0.02
        assert drawn[:, 1].abs().max() < 0.02  # never seen at all


def scene(**settings: object) -> ProbabilisticCapsules:
    torch.manual_seed(0)
    small = {"capsules": (3, 4), "template": 6, "widths": (8, 8, 8, 8), "features": 4, "top": "votes"}
    config = ProbabilisticConfig(**{**small, "objects": "one", "road": "parts-first", **settings})  # type: ignore[arg-type]
    return ProbabilisticCapsules(config, PictureInfo(1, 12, ("0", "1")))


def test_training_all_together_sees_poses_and_other_stages_and_looks_do_not() -> None:
    model, x, y = scene(draw_poses="seen"), torch.rand(8, 1, 12, 12), torch.zeros(8, dtype=torch.long)
    assert model.scene.seen is not None
    for stage in ("parts", "objects"):
        model.losses(x, y, Step(Noise(0, "cpu"), stage=stage))
    with torch.no_grad():
        model.losses(x, y, Step(Noise(0, "cpu"), stage="joint"))
    assert model.scene.seen.share.sum() == 0
    model.losses(x, y, Step(Noise(0, "cpu"), stage="joint"))
    assert abs(model.scene.seen.share.sum().item() - 0.01) < 1e-6  # one batch at the rate of a hundredth


def test_a_new_object_lies_where_it_was_seen_and_by_the_prior_anywhere() -> None:
    spreads = []
    for where in ("prior", "seen"):
        model = scene(draw_poses=where)
        if model.scene.seen is not None:
            model.scene.seen.see(0.05 * torch.randn(64, 3, 2, 3), torch.ones(64, 3) / 3)
        spreads.append(model.scene.draw(500, Noise(0, "cpu"))[0].pose.std())
    assert 0.9 < spreads[0] < 1.1
    assert 0.03 < spreads[1] < 0.07


def test_several_objects_have_no_seen_poses() -> None:
    refused(lambda: ProbabilisticConfig(draw_poses="seen"), "model.draw_poses seen", "model.objects one")
