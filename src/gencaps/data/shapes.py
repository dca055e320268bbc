"""Signed distances of simple shapes, and a canvas that paints them in layers with smooth edges.

A distance is negative inside a shape. All functions work on whole batches of coordinate grids; lengths are
numbers or tensors that broadcast against the grids.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Grid = Float[Tensor, "n height width"]
Number = float | Float[Tensor, "n 1 1"]
Colour = Float[Tensor, "#n 3"]


def ellipse(x: Grid, y: Grid, radius_x: Number, radius_y: Number) -> Grid:
    """Measures an ellipse about the origin, to first order: k (k - 1) / |grad| with k = |(x / a, y / b)|."""
    u, v = x / radius_x, y / radius_y
    k = (u * u + v * v).sqrt()
    slope = ((u / radius_x) ** 2 + (v / radius_y) ** 2).sqrt()
    return k * (k - 1) / slope.clamp(min=1e-6)


def rounded_box(x: Grid, y: Grid, half_x: Number, half_y: Number, corner: Number) -> Grid:
    """Measures a box about the origin whose corners have the given radius."""
    u, v = x.abs() - half_x + corner, y.abs() - half_y + corner
    outside = (u.clamp(min=0) ** 2 + v.clamp(min=0) ** 2).sqrt()
    return outside + torch.maximum(u, v).clamp(max=0) - corner


def capsule(x: Grid, y: Grid, to_x: Number, to_y: Number, radius: Number) -> Grid:
    """Measures a rounded line from the origin to (to_x, to_y)."""
    t = ((x * to_x + y * to_y) / (to_x * to_x + to_y * to_y)).clamp(0, 1)
    return ((x - t * to_x) ** 2 + (y - t * to_y) ** 2).sqrt() - radius


def ramp(t: Float[Tensor, " n"], colours: tuple[tuple[int, int, int], ...]) -> Float[Tensor, "n 3"]:
    """Reads a colour off a row of colours (0 to 255) at t in [0, 1], linear in between."""
    table = torch.tensor(colours, dtype=t.dtype, device=t.device) / 255
    place = t.clamp(0, 1) * (len(colours) - 1)
    low = place.long().clamp(max=len(colours) - 2)
    return torch.lerp(table[low], table[low + 1], (place - low)[:, None])


class Canvas:
    """Paints layers over each other: rgb <- rgb + coverage (colour - rgb).

    Args:
        rgb: what is there at first; it is painted on in place.
        pixel: the side of a pixel in the units of the distances; edges are one pixel wide.
    """

    def __init__(self, rgb: Float[Tensor, "n 3 height width"], pixel: Number) -> None:
        self.rgb, self.pixel = rgb, pixel

    def cover(self, distance: Grid, soft: Number = 0.0) -> Grid:
        """Turns a distance into coverage 0 to 1 across an edge of one pixel, or wider by ``soft``."""
        return (0.5 - distance / (self.pixel + soft)).clamp(0, 1)

    def blend(self, coverage: Grid, colour: Colour | Float[Tensor, "n 3 height width"]) -> None:
        """Lays one colour for each picture, or a picture of colours, over what is there."""
        colour = colour[:, :, None, None] if colour.ndim == 2 else colour
        self.rgb.lerp_(colour, coverage[:, None])

    def paint(
        self, distance: Grid, colour: Colour, on: Number = 1.0, *, alpha: float = 1.0, soft: Number = 0.0
    ) -> None:
        """Fills a shape. ``on`` (0 or 1 for each picture) leaves a picture untouched where it is 0."""
        self.blend(self.cover(distance, soft) * on * alpha, colour)
