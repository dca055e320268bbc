"""Paints a synthetic face, part after part, from back to front: what ``synthetic`` varies, this draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.data import face_parts
from gencaps.data.face_parts import Parts, between, column
from gencaps.data.shapes import Canvas, Grid, ramp


class Layer(NamedTuple):
    """One step of painting."""

    paint: Callable[[Parts, Canvas], None]
    box: tuple[float, float, float, float]
    """(left, top, right, bottom) about the head; nothing outside is touched, so nothing there is computed."""
    attribute: str | None = None
    """The attribute that the layer, and only this layer, depends on."""


LAYERS = (
    Layer(face_parts.background, (-2.0, -2.0, 2.0, 2.0)),
    Layer(face_parts.long_hair, (-0.75, -0.70, 0.75, 0.95), "Long_Hair"),
    Layer(face_parts.body, (-0.75, 0.30, 0.75, 2.0)),
    Layer(face_parts.ears, (-0.56, -0.12, 0.56, 0.22)),
    Layer(face_parts.earrings, (-0.62, 0.08, 0.62, 0.45), "Earrings"),
    Layer(face_parts.skin, (-0.52, -0.54, 0.52, 0.66)),
    Layer(face_parts.cheeks, (-0.46, 0.02, 0.46, 0.36), "Rosy_Cheeks"),
    Layer(face_parts.beard, (-0.52, 0.02, 0.52, 0.92), "Beard"),
    Layer(face_parts.mouth, (-0.24, 0.18, 0.24, 0.50), "Smiling"),
    Layer(face_parts.eyes, (-0.34, -0.24, 0.34, 0.14)),
    Layer(face_parts.short_hair, (-0.55, -0.58, 0.55, 0.0)),
    Layer(face_parts.bangs, (-0.52, -0.48, 0.52, 0.02), "Bangs"),
    Layer(face_parts.glasses, (-0.55, -0.20, 0.55, 0.22), "Eyeglasses"),
    Layer(face_parts.hat, (-0.80, -1.00, 0.80, -0.20), "Hat"),
)
"""From back to front."""
SCALE, TILT, RIGHT, DOWN = (0.94, 1.06), 7 * math.pi / 180, (-0.09, 0.09), (0.03, 0.14)
"""How far a head may grow, turn and move, in half picture sides."""


def _span(low: float, high: float, across: float, shift: tuple[float, float], size: int) -> slice:
    """Gives the rows (or columns) that a span about the head can reach wherever the head may be."""
    lean = across * math.sin(TILT) * SCALE[1]
    first = min(low * s for s in SCALE) + shift[0] - lean
    last = max(high * s for s in SCALE) + shift[1] + lean
    pixels = [(edge + 1) * size / 2 for edge in (first, last)]
    return slice(max(0, math.floor(pixels[0]) - 1), min(size, math.ceil(pixels[1]) + 1))


def head_frame(nuisance: dict[str, Float[Tensor, " n"]], size: int) -> tuple[Grid, Grid, Float[Tensor, "n 1 1"]]:
    """Gives the coordinates of every pixel about the head, and the side of a pixel in them."""
    like = nuisance["skin"]
    line = (torch.arange(size, dtype=like.dtype, device=like.device) + 0.5) * (2 / size) - 1
    scale = between(nuisance["scale"], *SCALE)
    tilt = between(nuisance["tilt"], -TILT, TILT)
    x = (line[None, None, :] - between(nuisance["right"], *RIGHT)) / scale
    y = (line[None, :, None] - between(nuisance["down"], *DOWN)) / scale
    x, y = x * tilt.cos() + y * tilt.sin(), y * tilt.cos() - x * tilt.sin()
    return x, y, 2 / (size * scale)


def paint(
    on: dict[str, Float[Tensor, " n"]],
    style: dict[str, tuple[Float[Tensor, " n"], ...]],
    nuisance: dict[str, Float[Tensor, " n"]],
    size: int,
) -> Float[Tensor, "n 3 size size"]:
    """Paints faces, values 0 to 1."""
    x, y, pixel = head_frame(nuisance, size)
    wall = ramp(nuisance["wall"], face_parts.WALL)
    parts = Parts(
        x,
        y,
        between(nuisance["width"], 0.93, 1.08),
        {name: column(value) for name, value in on.items()},
        style,
        nuisance,
        ramp(nuisance["skin"], face_parts.SKIN),
        ramp(nuisance["hair"], face_parts.HAIR),
    )
    rgb = wall[:, :, None, None].repeat(1, 1, size, size)
    for layer in LAYERS:
        left, top, right, bottom = layer.box
        rows = _span(top, bottom, max(-left, right), DOWN, size)
        columns = _span(left, right, max(-top, bottom), RIGHT, size)
        canvas = Canvas(rgb[:, :, rows, columns], pixel)
        layer.paint(parts._replace(x=x[:, rows, columns], y=y[:, rows, columns]), canvas)
    return rgb
