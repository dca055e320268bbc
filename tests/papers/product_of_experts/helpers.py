"""Small layers and models, in float64 where numbers are compared."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gencaps.model import PictureInfo
from gencaps.papers.product_of_experts.config import ProductOfExpertsConfig
from gencaps.papers.product_of_experts.layer import ExpertLayer
from gencaps.papers.product_of_experts.model import ProductOfExperts
from gencaps.primitives.routing_reference import route_reference
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


def plain_squash(z: Tensor) -> Tensor:
    """Writes Eq. (4) as it is printed."""
    square = z.square().sum(-1, keepdim=True)
    return square / (1 + square) * z / square.sqrt()


def algorithm_1(x: Tensor, w: Tensor, steps: int = 1) -> Tensor:
    """Writes Algorithm 1 out, capsule by capsule: the oracle of what training does.

    x (batch, I, d), w (J, I, o, d); gives Delta W, averaged over the batch.
    """
    batch, inputs, _ = x.shape
    change = torch.zeros_like(w)
    for b in range(batch):
        c = route_reference(x[b : b + 1], w, agreement="cosine", over="inputs").coefficients[0]  # c[j, i]
        pairs = [(j, i) for j in range(len(w)) for i in range(inputs)]

        def forward(below: list[Tensor], c: Tensor = c) -> list[Tensor]:
            return [sum(c[j, i] * (w[j, i] @ below[i]) for i in range(inputs)) for j in range(len(w))]  # type: ignore

        data = [x[b, i] for i in range(inputs)]
        z = forward(data)
        model, z_model = data, z
        for _ in range(steps):
            above = [plain_squash(z_model[j]) for j in range(len(w))]
            z_below = [sum(c[j, i] * (w[j, i].T @ above[j]) for j in range(len(w))) for i in range(inputs)]
            model = [plain_squash(z_below[i]) for i in range(inputs)]  # type: ignore
            z_model = forward(model)
        for j, i in pairs:
            positive = torch.outer(z[j], data[i]) / (1 + z[j] @ z[j])
            negative = torch.outer(z_model[j], model[i]) / (1 + z_model[j] @ z_model[j])
            change[j, i] += 2 * c[j, i] * (positive - negative)
    return change / batch
