"""Optimizers and schedules by name, all of them torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gencaps.engine.recipe import TrainConfig
from gencaps.model import CapsuleModel, Player

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": Adam,
    "adamw": AdamW,
    "sgd": lambda parameters, **settings: SGD(parameters, momentum=0.9, **settings),
}
SCHEDULES: dict[str, Callable[[Optimizer, float, int], LRScheduler]] = {
    "constant": lambda optimizer, rate, steps: ConstantLR(optimizer, factor=1.0),
    "one-cycle": lambda optimizer, rate, steps: OneCycleLR(optimizer, rate, total_steps=steps + 1),
    "cosine": lambda optimizer, rate, steps: CosineAnnealingLR(optimizer, steps),
    "cooldown": lambda optimizer, rate, steps: LambdaLR(optimizer, lambda step: min(1.0, 5 * (1 - step / steps))),
}


def make_optimizer(player: Player, config: TrainConfig, device: torch.device) -> Optimizer:
    """Makes the optimizer of a player, in one fused kernel on a GPU."""
    name = player.optimizer or config.optimizer
    settings: dict[str, Any] = {"lr": config.learning_rate * player.rate, "weight_decay": config.weight_decay}
    if name != "sgd":
        settings["betas"] = (config.beta1, 0.999)
    if device.type == "cuda":
        settings["fused"] = True
    return OPTIMIZERS[name](player.parameters, **settings)


def make_schedule(optimizer: Optimizer, player: Player, config: TrainConfig, steps: int) -> LRScheduler:
    """Makes the schedule of a player over the steps of a stage."""
    return SCHEDULES[config.schedule](optimizer, config.learning_rate * player.rate, steps)


class MovingAverage(AveragedModel):
    """torch's exponential average of a model's weights, in a few launches a step.

    torch's own update carries its count of steps to the GPU each time, and there the host waits for all work so far.

    Args:
        model: whose weights are followed.
        decay: what is kept of the average at each step.
        unaveraged: names of parts whose weights are taken as they are.
    """

    def __init__(self, model: nn.Module, decay: float, unaveraged: tuple[str, ...] = ()) -> None:
        super().__init__(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        self.unaveraged = unaveraged

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Moves weights towards the model's by a share of 1 - decay; buffers and some parts are taken as they are."""
        if self.n_averaged == 0:  # lies on the CPU
            super().update_parameters(model)
            return
        assert self.multi_avg_fn is not None
        (moved, copied), (there, new) = self._parted(self.module), self._parted(model)
        self.multi_avg_fn(moved, there, self.n_averaged)
        if copied:
            torch._foreach_copy_(copied, new)  # pyright: ignore[reportPrivateImportUsage]
        self.n_averaged += 1

    def _parted(self, module: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
        """Lists what is averaged, and what is taken as it is."""
        averaged: list[Tensor] = []
        taken: list[Tensor] = list(module.buffers())
        for name, weight in module.named_parameters():
            (taken if name.split(".")[0] in self.unaveraged else averaged).append(weight)
        return averaged, taken


def make_average(model: CapsuleModel, decay: float) -> MovingAverage | None:
    """Makes the slowly moving copy of a model whose weights are kept; ``None`` for a decay of 0."""
    return MovingAverage(model, decay, model.unaveraged) if decay > 0 else None
