"""Small layers and models, in float64 where numbers are compared."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gencaps.model import PictureInfo
from gencaps.papers.product_of_experts.config import ProductOfExpertsConfig
from gencaps.papers.product_of_experts.layer import ExpertLayer
from gencaps.papers.product_of_experts.model import ProductOfExperts
from gencaps.primitives.squash import squash


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Draws standard normal numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer(iterations: int = 3, chains: int = 0) -> tuple[ExpertLayer, Tensor]:
    """Gives a layer of 4 capsules of 3 over 6 of 2, and a batch of 5 for it."""
    torch.manual_seed(0)
    made = ExpertLayer(6, 2, 4, 3, iterations, 3, 2.0, chains).double()
    return made, squash(2 * normal(5, 6, 2))


def model(size: int = 8, channels: int = 1, **settings: Any) -> ProductOfExperts:
    """Builds a tiny model."""
    small: dict[str, Any] = {"filters": (6, 8), "kernel": 3, "stride": 2, "primary_dim": 4, "capsules": (5,), "dim": 3}
    torch.manual_seed(0)
    config = ProductOfExpertsConfig(**{**small, **settings})
    return ProductOfExperts(config, PictureInfo(channels, size, tuple("0123456789")))
