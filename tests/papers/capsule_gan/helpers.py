"""Tiny CapsuleGANs of every kind."""

from __future__ import annotations

from typing import Any

import torch

from gencaps.engine.pretrained import build
from gencaps.model import PictureInfo
from gencaps.papers.capsule_gan.config import CapsuleGANConfig

KINDS: dict[str, dict[str, Any]] = {"plain": {}, "conditional": {"conditional": True}, "bigan": {"bigan": True}}
SIZE = 20


def make(kind: str = "plain", channels: int = 1, size: int = SIZE, **settings: Any) -> Any:
    """Builds a tiny model as the engine does; in a test of its own seed."""
    torch.manual_seed(0)
    tiny = {"latent": 5, "width": 4, "discriminator": 4, "capsules": 2, "primary_dim": 4, "dim": 3}
    config = CapsuleGANConfig(**{**tiny, **KINDS[kind], **settings})
    return build("capsule_gan", config, PictureInfo(channels, size, ("a", "b", "c")))


def pictures(n: int = 4, channels: int = 1, size: int = SIZE) -> torch.Tensor:
    """Draws pictures."""
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(1))
