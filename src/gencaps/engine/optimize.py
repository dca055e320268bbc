"""Optimizers and schedules by name, all of them torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LRScheduler, OneCycleLR
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
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model, multi_avg_fn=get_ema_multi_avg_fn(decay))

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Moves every weight towards the model's by a share of 1 - decay; buffers are taken as they are."""
        if self.n_averaged == 0:  # lies on the CPU
            super().update_parameters(model)
            return
        assert self.multi_avg_fn is not None
        self.multi_avg_fn(list(self.module.parameters()), list(model.parameters()), self.n_averaged)
        if buffers := list(self.module.buffers()):
            torch._foreach_copy_(buffers, list(model.buffers()))  # pyright: ignore[reportPrivateImportUsage]
        self.n_averaged += 1


def make_average(model: CapsuleModel, decay: float) -> MovingAverage | None:
    """Makes the slowly moving copy of a model whose weights are kept; ``None`` for a decay of 0."""
    return MovingAverage(model, decay) if decay > 0 else None
