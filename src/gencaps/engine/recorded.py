"""A training step that is recorded once on a GPU and replayed from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from gencaps.engine.team import Team, move, take_turn
from gencaps.model import CapsuleModel, Step
from gencaps.primitives.noise import Noise

WARM_UP = 3
"""Steps on another stream before the recording, in which libraries choose their ways and fetch their memory."""


@runtime_checkable
class Recording(Protocol):
    """Work that was done once and can be done again on the same memory."""

    def replay(self) -> None: ...


def can_record(fabric: Fabric) -> bool:
    """Tells whether steps can be recorded: on one GPU."""
    return fabric.device.type == "cuda" and fabric.world_size == 1


def record(work: Callable[[], Sequence[Tensor]], generators: Sequence[torch.Generator]) -> Recording:
    """Records work as a CUDA graph; what it gives must be kept alive, and is written anew by each replay.

    Args:
        work: launches on the GPU, without a look from the host.
        generators: those that it draws from; each replay goes on from where they stand.
    """
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        work()
    return graph


def warm_up(work: Callable[[], object]) -> None:
    """Does work a few times on a stream of its own, as a recording wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            work()
    torch.cuda.current_stream().wait_stream(stream)


class Turn(NamedTuple):
    """One player's part of a step: what replays it and what it leaves."""

    recording: Recording
    gradients: list[tuple[nn.Parameter, Tensor]]
    names: tuple[str, ...]
    values: Tensor


class RecordedStep:
    """Augmentation, losses and gradients of a step, one recording a player.

    The optimizers stay outside, because rates and momenta move on the host. Everything random follows the step's seed
    as it would without a recording.
    """

    def __init__(
        self,
        fabric: Fabric,
        wrapped: Any,
        model: CapsuleModel,
        team: Team,
        stage: str,
        augment: Callable[[Tensor, Noise], Tensor],
        x: Tensor,
        y: Tensor,
        clip_norm: float,
    ) -> None:
        self.fabric, self.wrapped, self.team, self.clip_norm = fabric, wrapped, team, clip_norm
        self.augment, self.x, self.y = augment, x.clone(), y.clone()
        self.noise = Noise(0, x.device)
        self.progress = torch.zeros((), device=x.device)
        self.step = Step(self.noise, stage=stage, progress=self.progress)
        self.pictures = x
        before = [buffer.clone() for buffer in model.buffers()]
        try:
            warm_up(lambda: [self._work(name) for name in team.optimizers])
            self.turns = {name: self._record(name) for name in team.optimizers}
        finally:
            for buffer, value in zip(model.buffers(), before, strict=True):
                buffer.copy_(value)

    def _work(self, name: str) -> dict[str, Tensor]:
        if name == next(iter(self.team.optimizers)):
            self.pictures = self.augment(self.x, self.noise)
        return take_turn(self.fabric, self.wrapped, self.team, self.pictures, self.y, self.step._replace(player=name))

    def _record(self, name: str) -> Turn:
        turn: dict[str, Any] = {}

        def work() -> list[Tensor]:
            terms = self._work(name)
            values = torch.stack([value.detach().float() for value in terms.values()])
            # no other turn may take this memory
            gradients = [(p, p.grad) for p in self.team.players[name].parameters if p.grad is not None]
            turn.update(names=tuple(terms), values=values, gradients=gradients)
            return [values, self.pictures, *(gradient for _, gradient in gradients)]

        recording = record(work, [self.noise.generator])
        return Turn(recording, turn["gradients"], turn["names"], turn["values"])

    def take(self, x: Tensor, y: Tensor, seed: int, progress: float = 1.0) -> dict[str, Tensor]:
        """Lets each player move once on a batch and gives all loss terms, still on the device."""
        self.progress.fill_(progress)
        self.x.copy_(x)
        self.y.copy_(y)
        self.noise.generator.manual_seed(seed)
        terms: dict[str, Tensor] = {}
        for name, turn in self.turns.items():
            turn.recording.replay()
            for parameter, gradient in turn.gradients:
                parameter.grad = gradient
            terms |= dict(zip(turn.names, turn.values.clone().unbind(), strict=True))
            move(self.fabric, self.wrapped, self.team, name, self.clip_norm)
        return terms
