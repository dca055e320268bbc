"""A restricted Boltzmann machine of binary units: what (Hauser, 2020) takes products of capsules from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.noise import Noise

Rows = Float[Tensor, "n features"]
Units = Float[Tensor, "n units"]


@dataclass(frozen=True, eq=False)
class RBM:
    """Units that are on with probability ``sigmoid(W v + b)``. (Hinton, 2002); (Hauser, 2020), section 2.1."""

    weight: Float[Tensor, "units features"]
    unit_bias: Float[Tensor, "units"]
    pixel_bias: Float[Tensor, "features"]

    @classmethod
    def fit(
        cls,
        x: Rows,
        units: int,
        noise: Noise,
        *,
        epochs: int = 20,
        batch: int = 128,
        rate: float = 0.05,
        decay: float = 1e-4,
    ) -> RBM:
        """Fits by contrastive divergence with one step: data minus model. (Hauser, 2020), Eq. (2)."""
        share = x.mean(0).clamp(0.01, 0.99)
        machine = cls(0.01 * noise.normal(units, x.shape[1]), x.new_zeros(units), (share / (1 - share)).log())
        speed = [torch.zeros_like(part) for part in (machine.weight, machine.unit_bias, machine.pixel_bias)]
        for _ in range(epochs):
            order = noise.uniform(len(x)).argsort()
            for rows in order.split(batch):
                machine._step(x[rows], noise, speed, rate, decay)
        return machine

    def encode(self, v: Rows) -> Units:
        """Gives how likely each unit is on."""
        return torch.sigmoid(v @ self.weight.T + self.unit_bias)

    def _step(self, v: Rows, noise: Noise, speed: list[Tensor], rate: float, decay: float) -> None:
        h = self.encode(v)
        fired = (noise.uniform(*h.shape) < h).to(v.dtype)
        v_model = torch.sigmoid(fired @ self.weight + self.pixel_bias)
        h_model = self.encode(v_model)
        ascent = (
            (h.T @ v - h_model.T @ v_model) / len(v) - decay * self.weight,
            (h - h_model).mean(0),
            (v - v_model).mean(0),
        )
        parts = (self.weight, self.unit_bias, self.pixel_bias)
        for part, moving, gradient in zip(parts, speed, ascent, strict=True):
            moving.mul_(0.9).add_(gradient)
            part.add_(moving, alpha=rate)
