"""Geometry on whole batches, on the device the batch lives on; the random numbers come as arguments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from gencaps.data.images import ImageSet
from gencaps.data.splits import generator_of

Padding = Literal["zeros", "border", "reflection"]


def _as_input(out: Float[Tensor, " ..."], x: Shaped[Tensor, " ..."]) -> Shaped[Tensor, " ..."]:
    """Gives a computed picture the type of the one it came from; bytes are rounded."""
    return out.round().clamp(0, 255).to(torch.uint8) if x.dtype == torch.uint8 else out.to(x.dtype)


def warp(
    x: Shaped[Tensor, "n channels height width"],
    matrix: Float[Tensor, "n 2 3"],
    *,
    out: tuple[int, int] | None = None,
    padding: Padding = "zeros",
    bend: Float[Tensor, "n 2 out_height out_width"] | None = None,
) -> Shaped[Tensor, "n channels out_height out_width"]:
    """Draws each picture through an affine map, with bilinear interpolation.

    ``matrix`` takes a point of the output to the point of the input that is shown there, in pixels (x, y)
    from the two centres: q = A p + t. ``out`` is the output's (height, width), by default the input's. ``bend``
    is added to q, pixel by pixel.
    """
    height, width = x.shape[-2:]
    rows, columns = out or (height, width)
    like = {"dtype": torch.float32, "device": x.device}
    py = torch.arange(rows, **like) - (rows - 1) / 2
    px = torch.arange(columns, **like) - (columns - 1) / 2
    a = matrix.float()[:, :, :, None, None]
    # term by term, not as a matrix product, which autocast or TF32 would round to a fraction of a pixel
    q = a[:, :, 0] * px[None, None, None, :] + a[:, :, 1] * py[None, None, :, None] + a[:, :, 2]
    q = q if bend is None else q + bend
    grid = torch.stack([q[:, 0] * (2 / width), q[:, 1] * (2 / height)], -1)
    drawn = F.grid_sample(x.float(), grid, mode="bilinear", padding_mode=padding, align_corners=False)
    return _as_input(drawn, x)


def _matrix(
    radians: Float[Tensor, " n"],
    scale_x: Float[Tensor, " n"],
    scale_y: Float[Tensor, " n"],
    shear: Float[Tensor, " n"],
    shift: Float[Tensor, "n 2"],
) -> Float[Tensor, "n 2 3"]:
    """Builds the map from output to input for: scale, then shear, then turn (counter-clockwise), then shift.

    Forward, with y pointing down: p' = R H S p + d, so p = S^-1 H^-1 R^-1 (p' - d), with
    R = [[cos, sin], [-sin, cos]] and H = [[1, shear], [0, 1]].
    """
    cos, sin = radians.cos(), radians.sin()
    # H^-1 R^-1, where R^-1 = [[cos, -sin], [sin, cos]]
    a, b = cos - shear * sin, -sin - shear * cos
    rows = (torch.stack([a, b], -1) / scale_x[:, None], torch.stack([sin, cos], -1) / scale_y[:, None])
    linear = torch.stack(rows, 1)
    moved = -(linear * shift[:, None, :]).sum(-1, keepdim=True)
    return torch.cat([linear, moved], -1)


def affine(
    x: Shaped[Tensor, "n channels height width"],
    *,
    degrees: Float[Tensor, " n"] | None = None,
    scale: Float[Tensor, "n 2"] | None = None,
    shear: Float[Tensor, " n"] | None = None,
    shift: Float[Tensor, "n 2"] | None = None,
    out: tuple[int, int] | None = None,
    padding: Padding = "zeros",
    bend: Float[Tensor, "n 2 out_height out_width"] | None = None,
) -> Shaped[Tensor, "n channels out_height out_width"]:
    """Scales, shears, turns and shifts each picture by its own numbers, about its centre.

    Args:
        degrees: turn, counter-clockwise as seen.
        scale: growth in x and y.
        shear: pixels to the right for each pixel down.
        shift: pixels to the right and down.
        bend: where each pixel is fetched from beyond that, in pixels to the right and down.
    """
    zeros = torch.zeros(len(x), dtype=torch.float32, device=x.device)
    scale = torch.ones(len(x), 2, device=x.device) if scale is None else scale
    matrix = _matrix(
        zeros if degrees is None else degrees.float() * (math.pi / 180),
        scale[:, 0],
        scale[:, 1],
        zeros if shear is None else shear,
        torch.zeros(len(x), 2, device=x.device) if shift is None else shift,
    )
    return warp(x, matrix, out=out, padding=padding, bend=bend)


def random_affine(
    x: Shaped[Tensor, "n channels height width"],
    u: Float[Tensor, "n 4"],
    degrees: float = 0.0,
    scale: tuple[float, float] = (1.0, 1.0),
    translate: float = 0.0,
    *,
    padding: Padding = "zeros",
    bend: Float[Tensor, "n 2 height width"] | None = None,
) -> Shaped[Tensor, "n channels height width"]:
    """Turns, scales and shifts each picture by amounts read off uniform random numbers.

    Args:
        u: uniform in [0, 1): angle, scale, shift in x, shift in y; 0.5 is no turn and no shift.
        degrees: turns up to this, either way.
        scale: the smallest and the largest growth, even on a logarithmic scale.
        translate: shifts up to this fraction of the width and of the height, either way.
        bend: where each pixel is fetched from beyond that, as ``bending`` gives it.
    """
    signed = u.float() * 2 - 1
    low, high = math.log(scale[0]), math.log(scale[1])
    growth = (low + (high - low) * u[:, 1:2].float()).exp().expand(-1, 2)
    height, width = x.shape[-2:]
    # a tensor made from Python numbers would make the host wait for a GPU in every step
    shift = translate * torch.stack([signed[:, 2] * width, signed[:, 3] * height], 1)
    return affine(x, degrees=signed[:, 0] * degrees, scale=growth, shift=shift, padding=padding, bend=bend)


def bending(
    u: Float[Tensor, "n 2 knots knots"], pixels: float, size: tuple[int, int]
) -> Float[Tensor, "n 2 height width"]:
    """Gives a smooth field of shifts, up to about so many pixels, from uniform random numbers at a few knots.

    Handwriting varies this way (Simard et al., 2003); a knot of 0.5 stays where it is.
    """
    knots = u.shape[-1]
    one = torch.eye(knots, device=u.device)[None, None]
    # a small matrix for each direction: torch's own kernel for whole pictures is slow
    down, across = (F.interpolate(one, (n, knots), mode="bicubic", align_corners=True)[0, 0] for n in size)
    return torch.einsum("hk,nckl,wl->nchw", down, (u.float() * 2 - 1) * pixels, across)


def without_affine(field: Float[Tensor, "n 2 knots knots"]) -> Float[Tensor, "n 2 knots knots"]:
    """Takes out of a field of shifts what a shift, a turn, a growth or a shear could do: its best affine fit.

    What is left bends a picture and does nothing else.
    """
    line = torch.linspace(-1, 1, field.shape[-1], dtype=field.dtype, device=field.device)
    # orthogonal on the square grid: a constant, x and y
    plane = torch.stack([torch.ones_like(line).expand(len(line), -1), line.expand(len(line), -1)])
    plane = torch.cat([plane, plane[1:].mT]).flatten(1)
    plane = plane / plane.norm(dim=1, keepdim=True)
    flat = field.flatten(2)
    return (flat - flat @ plane.T @ plane).unflatten(2, field.shape[-2:])


def rotate(
    x: Shaped[Tensor, "n channels height width"],
    degrees: Float[Tensor, " n"],
    *,
    padding: Padding = "zeros",
) -> Shaped[Tensor, "n channels height width"]:
    """Turns each picture about its centre by its own angle, counter-clockwise as seen."""
    return affine(x, degrees=degrees, padding=padding)


def horizontal_flip(
    x: Shaped[Tensor, "n channels height width"], u: Float[Tensor, " n"]
) -> Shaped[Tensor, "n channels height width"]:
    """Mirrors left and right each picture whose uniform random number is below one half."""
    return torch.where((u < 0.5)[:, None, None, None], x.flip(-1), x)


def shifted_window(
    x: Shaped[Tensor, "n channels height width"],
    top: Shaped[Tensor, " n"],
    left: Shaped[Tensor, " n"],
    size: int,
) -> Shaped[Tensor, "n channels size size"]:
    """Cuts a square window with its corner at (top, left) from each picture; outside it is black.

    Whole pixels, so no value changes.
    """
    height, width = x.shape[-2:]
    span = torch.arange(size, device=x.device)
    rows, columns = top[:, None] + span, left[:, None] + span
    in_rows, in_columns = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
    inside = in_rows[:, None, :, None] & in_columns[:, None, None, :]
    pictures = torch.arange(len(x), device=x.device)[:, None, None, None]
    channels = torch.arange(x.shape[1], device=x.device)[None, :, None, None]
    rows, columns = rows.clamp(0, height - 1)[:, None, :, None], columns.clamp(0, width - 1)[:, None, None, :]
    return x[pictures, channels, rows, columns] * inside.to(x.dtype)


def place_on_canvas(
    x: Shaped[Tensor, "n channels height width"], u: Float[Tensor, "n 2"], size: int
) -> Shaped[Tensor, "n channels size size"]:
    """Puts each picture somewhere on a black square canvas, whole and by whole pixels.

    ``u``, uniform in [0, 1), is the place: (0, 0) top left, towards (1, 1) bottom right, as (down, right).
    """
    height, width = x.shape[-2:]
    room = u.new_tensor([size - height + 1, size - width + 1])
    down, right = (u * room).floor().long().unbind(1)
    return shifted_window(x, -down, -right, size)


def resize(x: UInt8[Tensor, "n channels height width"], size: int) -> UInt8[Tensor, "n channels size size"]:
    """Resizes pictures to a square with antialiasing, some thousand at a time."""
    if x.shape[-2:] == (size, size):
        return x
    out = x.new_empty(*x.shape[:2], size, size)
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096]
        drawn = F.interpolate(part.float(), (size, size), mode="bilinear", antialias=True)
        out[start : start + 4096] = _as_input(drawn, part)
    return out


def rotated(set: ImageSet, max_degrees: float, seed: int) -> ImageSet:
    """Turns every picture of a set by an angle within ``max_degrees`` either way, fixed by the seed."""
    u = torch.rand(len(set), generator=generator_of(seed))
    degrees = (u * 2 - 1) * max_degrees
    x = torch.empty_like(set.x)
    for start in range(0, len(set), 4096):
        here = slice(start, start + 4096)
        x[here] = rotate(set.x[here], degrees[here].to(x.device))
    note = f"turned by up to {max_degrees:g} degrees, seed {seed}"
    return replace(set, name=f"rotated {set.name}", x=x, notes=(*set.notes, note))
