"""Looking at a picture from several sides: inference that starts from each and keeps the likeliest."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.papers.probabilistic.capsules import Layer
from gencaps.papers.probabilistic.layer import frames
from gencaps.primitives.pose import compose, from_parameters, identity, invert, warp

Turns = Float[Tensor, "*batch 2 3"]


def all_turns(turns: int, like: Tensor) -> Float[Tensor, "turns 2 3"]:
    """Gives so many turns, equally far apart, the first being none."""
    angle = torch.arange(turns, dtype=like.dtype, device=like.device) * (2 * math.pi / turns)
    return from_parameters(angle, angle.new_ones(turns, 2), torch.zeros_like(angle), angle.new_zeros(turns, 2))


def turned(x: Float[Tensor, "batch channels size size"], turn: Turns) -> Float[Tensor, "batch channels size size"]:
    """Turns pictures about their middle, all alike or each by its own turn."""
    return warp(x, turn.expand(len(x), 2, 3), (x.shape[-2], x.shape[-1]))


def turn_back(layer: Layer, turn: Turns, top: bool) -> Layer:
    """Gives the capsules of pictures as they were given from those of the turned ones: ``R^-1 A``.

    The model's own symmetry, (Smith et al., 2021), Eq. (5): a frame that moves takes all of its parts along.
    """
    back = invert(turn)[..., None, :, :]
    pose = compose(back, frames(layer.pose, top))
    if top:
        pose = pose - identity(dtype=pose.dtype, device=pose.device)
    # the variance of R^-1 a is that of its rows, mixed by the squared entries of R^-1
    log_var = torch.log(back[..., :2].square() @ layer.pose_log_var.exp())
    return Layer(layer.presence_logit, pose, log_var)
