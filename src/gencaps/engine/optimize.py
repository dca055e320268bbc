"""Optimizers and schedules by name, all of them torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
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


def make_average(model: CapsuleModel, decay: float) -> AveragedModel | None:
    """Makes the slowly moving copy of a model whose weights are kept; ``None`` for a decay of 0."""
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay)) if decay > 0 else None
