"""The players of a stage, with what moves each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from gencaps.engine.optimize import make_optimizer, make_schedule
from gencaps.engine.recipe import TrainConfig
from gencaps.model import CapsuleModel, Player, Stage, Step


@dataclass(frozen=True)
class Team:
    """A stage's players in the order in which they move."""

    players: dict[str, Player]
    optimizers: dict[str, Any]
    """torch's optimizers as Fabric wraps them."""
    schedules: dict[str, LRScheduler]

    @classmethod
    def of(cls, model: CapsuleModel, stage: Stage, config: TrainConfig, steps: int, fabric: Fabric) -> Team:
        """Makes the optimizers and schedules of a stage that takes so many steps."""
        players = model.players(stage.name)
        optimizers = {n: make_optimizer(p, config, fabric.device) for n, p in players.items()}
        schedules = {n: make_schedule(o, players[n], config, steps) for n, o in optimizers.items()}
        return cls(players, {n: fabric.setup_optimizers(o) for n, o in optimizers.items()}, schedules)

    @property
    def learning_rate(self) -> float:
        """The first player's rate as it stands."""
        return float(next(iter(self.optimizers.values())).param_groups[0]["lr"])

    def state(self) -> dict[str, Any]:
        """Gives what a checkpoint keeps."""
        return {
            "optimizers": {n: o.state_dict() for n, o in self.optimizers.items()},
            "schedules": {n: s.state_dict() for n, s in self.schedules.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Puts it back."""
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
            self.schedules[name].load_state_dict(state["schedules"][name])


@contextmanager
def moving_alone(model: nn.Module, player: Player) -> Iterator[None]:
    """Takes gradients of this player's weights alone: of the others' no time is spent on what nobody steps along."""
    own = {id(p) for p in player.parameters}
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    for p in others:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in others:
            p.requires_grad_(True)


def take_turn(fabric: Fabric, wrapped: Any, team: Team, x: Tensor, y: Tensor, step: Step) -> dict[str, Tensor]:
    """Leaves the gradients of the step's player on a batch, and gives its loss terms, still on the device."""
    torch.compiler.cudagraph_mark_step_begin()  # what compiled networks gave the last turn is no longer needed
    # none, not zeros: adding to what a CUDA graph left there would read memory that the next graph has taken
    team.optimizers[step.player].zero_grad(set_to_none=True)
    with moving_alone(wrapped, team.players[step.player]):
        losses = wrapped(x, y, step)
        fabric.backward(losses.total)
    prefix = f"{step.player}." if len(team.optimizers) > 1 else ""
    return {f"{prefix}{term}": value for term, value in {"loss": losses.total, **losses.terms}.items()}


def move(fabric: Fabric, wrapped: Any, team: Team, name: str, clip_norm: float) -> None:
    """Lets a player step along the gradients that its turn left."""
    optimizer = team.optimizers[name]
    if clip_norm > 0:
        fabric.clip_gradients(wrapped, optimizer, max_norm=clip_norm, error_if_nonfinite=False)
    optimizer.step()
    team.schedules[name].step()


def take_step(
    fabric: Fabric, wrapped: Any, team: Team, x: Tensor, y: Tensor, step: Step, clip_norm: float
) -> dict[str, Tensor]:
    """Lets each player move once on a batch and gives all loss terms, still on the device."""
    terms: dict[str, Tensor] = {}
    for name in team.optimizers:
        terms |= take_turn(fabric, wrapped, team, x, y, step._replace(player=name))
        move(fabric, wrapped, team, name, clip_norm)
    return terms
