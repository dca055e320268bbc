"""A tiny scene, and capsules drawn at random, for all tests of this room."""

from __future__ import annotations

from typing import Any

import torch

from gencaps.model import PictureInfo
from gencaps.papers.probabilistic.capsules import Capsules
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.model import ProbabilisticCapsules

TINY: dict[str, Any] = {
    "capsules": (3, 4),
    "template": 5,
    "widths": (8, 8, 8, 8),
    "features": 4,
    "width": 16,
    "blocks": 1,
    "heads": 2,
    "points": 4,
    "code": 8,
}


def tiny(size: int = 10, channels: int = 1, seed: int = 0, **settings: Any) -> ProbabilisticCapsules:
    """Builds a tiny model whose every learned number is random, so that none of them can hide."""
    torch.manual_seed(seed)
    info = PictureInfo(channels, size, tuple("0123456789"))
    model = ProbabilisticCapsules(ProbabilisticConfig(**{**TINY, **settings}), info)
    with torch.no_grad():
        for weight in model.scene.families.parameters():
            weight += 0.3 * torch.randn_like(weight)
    return model.eval()


def random_capsules(batch: int, count: int, seed: int, scale: float = 0.4) -> Capsules:
    """Draws capsules whose presences are soft and whose poses are near a template's scale."""
    generator = torch.Generator().manual_seed(seed)
    pose = 0.5 * torch.eye(2, 3) + scale * torch.randn(batch, count, 2, 3, generator=generator)
    return Capsules(torch.randn(batch, count, generator=generator), pose)
