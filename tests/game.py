"""The engine's own steps on a model of two players, and what they moved."""

from __future__ import annotations

from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from gencaps.engine.recipe import TrainConfig
from gencaps.engine.team import Team, take_step
from gencaps.game import AdversarialGame
from gencaps.model import Stage, Step
from gencaps.primitives.noise import Noise


def weights(part: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in part.parameters()]


def moved(part: nn.Module, before: list[Tensor]) -> bool:
    return any(not torch.equal(p, old) for p, old in zip(part.parameters(), before, strict=True))


def vary(model: AdversarialGame) -> None:
    """Makes an untrained generator, whose pictures are all alike, paint others for other z."""
    with torch.no_grad():
        for weight in model.generator.parameters():
            weight.mul_(10)


class Match:
    """The engine's own steps on a model."""

    def __init__(self, model: AdversarialGame, **train: Any) -> None:
        self.fabric = Fabric(accelerator="cpu", devices=1)
        config = TrainConfig(**{"schedule": "constant", "beta1": 0.5, **train})
        self.team = Team.of(model, Stage("all"), config, 10, self.fabric)
        self.wrapped = self.fabric.setup_module(model.train())

    def step(self, x: Tensor, seed: int, *players: str, y: Tensor | None = None) -> dict[str, Tensor]:
        chosen = {n: o for n, o in self.team.optimizers.items() if n in players} if players else self.team.optimizers
        team = Team(self.team.players, chosen, self.team.schedules)
        y = torch.zeros(len(x), dtype=torch.long) if y is None else y
        return take_step(self.fabric, self.wrapped, team, x, y, Step(Noise(seed)), 0.0)
