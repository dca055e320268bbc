"""How well turned pictures are still told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Integer, Shaped
from torch import Tensor

from gencaps.data.splits import generator_of
from gencaps.data.transforms import rotate
from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_fractions, refuse_shape, refuse_uneven, refuse_unusable

ANGLES = (0.0, 45.0, 90.0, 135.0, 180.0)


def rotation_sweep(
    read: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "n channels height width"],
    y: Integer[Tensor, "n"],
    angles: Iterable[int | float] = ANGLES,
    seed: int = 0,
    batch: int = 1024,
) -> dict[float, float]:
    """Gives for each theta the accuracy on pictures turned by angles uniform in [-theta, theta].

    The seed draws one number a picture, which serves every theta (the turns of ``data.transforms.rotated``);
    at theta = 0 the pictures are read as they are.

    Args:
        read: tells the classes of a batch of pictures, each 0 to classes - 1.
        x: pictures as ``read`` takes them.
        angles: theta, in degrees.
        batch: pictures turned and read at a time.
    """
    refuse_shape(x, "n channels height width", "the pictures to turn")
    refuse_shape(y, "n", "the labels of the set to turn")
    refuse_fractions(y, "the labels of the set to turn")
    refuse_uneven(x, y, "the pictures to turn", "the labels of the set to turn")
    refuse_unusable(y, "the set to turn")
    if batch < 1:
        raise GencapsError(f"pictures cannot be read {batch} at a time; give a batch of at least 1")
    thetas = [float(theta) for theta in angles]
    for theta in thetas:
        if not (math.isfinite(theta) and theta >= 0):
            raise GencapsError(f"pictures cannot be turned by up to {theta:g} degrees; give an angle of at least 0")
    u = torch.rand(len(x), generator=generator_of(seed))
    return {theta: _accuracy(read, x, y, (u * 2 - 1) * theta, batch) for theta in thetas}


def _accuracy(
    read: Callable[[Tensor], Tensor],
    x: Shaped[Tensor, "n channels height width"],
    y: Integer[Tensor, "n"],
    degrees: Shaped[Tensor, "n"],
    batch: int,
) -> float:
    """Gives the share told right of the pictures turned by their own angles."""
    turned, right = bool(degrees.any()), 0
    for start in range(0, len(x), batch):
        # a set may be mapped from disk: never looked at as a whole
        part = x[start : start + batch]
        refuse_unusable(part, "the set to turn", what="pixels")
        if turned:
            part = rotate(part, degrees[start : start + batch].to(x.device))
        told = read(part)
        if told.shape != (len(part),):
            raise GencapsError(
                f"the reader gave shape {tuple(told.shape)} for {len(part)} pictures; give one class each"
            )
        right += int((told == y[start : start + batch].to(told.device)).sum())
    return right / len(x)
