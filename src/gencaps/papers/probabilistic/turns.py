"""Looking at a picture from several sides: inference that starts from each and keeps the likeliest."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from gencaps.papers.probabilistic.capsules import Layer
from gencaps.papers.probabilistic.layer import frames
from gencaps.primitives.pose import compose, from_parameters, identity, invert, warp

Turn = Float[Tensor, "turns 2 3"]


def all_turns(turns: int, like: Tensor) -> Turn:
    """Gives so many turns, equally far apart, the first being none."""
    angle = torch.arange(turns, dtype=like.dtype, device=like.device) * (2 * math.pi / turns)
    return from_parameters(angle, angle.new_ones(turns, 2), torch.zeros_like(angle), angle.new_zeros(turns, 2))


def turned(x: Float[Tensor, "batch channels size size"], turn: Turn) -> Float[Tensor, "turns_batch channels size size"]:
    """Turns each picture by every turn, all pictures by the first turn first."""
    many = x.expand(len(turn), *x.shape).flatten(0, 1)
    return warp(many, turn.repeat_interleave(len(x), 0), (x.shape[-2], x.shape[-1]))


def turn_back(layer: Layer, turn: Turn, top: bool) -> Layer:
    """Gives the capsules of pictures as they were given from those of the turned ones: ``R^-1 A``.

    The model's own symmetry, (Smith et al., 2021), Eq. (5): a frame that moves takes all of its parts along.
    """
    back = invert(turn).repeat_interleave(len(layer.pose) // len(turn), 0)
    pose = compose(back[:, None], frames(layer.pose, top))
    if top:
        pose = pose - identity(dtype=pose.dtype, device=pose.device)
    # the variance of R^T a is that of its rows mixed by the squared entries of R
    log_var = torch.log(back[:, None, :, :2].square() @ layer.pose_log_var.exp())
    return Layer(layer.presence_logit, pose, log_var)


def keep(layer: Layer, best: Integer[Tensor, "batch"]) -> Layer:
    """Keeps of each picture the capsules of one turn."""
    row = best * len(best) + torch.arange(len(best), device=best.device)
    return Layer(*(part[row] for part in layer))
