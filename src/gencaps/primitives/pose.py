"""Affine poses: where a picture (a template, a part) lies on a canvas.

A pose is (..., 2, 3) = [L | t] and maps a point p of the picture to the point ``q = L p + t`` of the canvas.
Points are (x, y), x to the right, y down, and -1 to 1 runs from the outer edge of the first pixel to the
outer edge of the last one (``align_corners=False``). So a translation of (1, 0) moves a picture to the right
by half of the canvas, and a scale of 0.5 paints it at half its size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

Pose = Float[Tensor, "*batch 2 3"]


def identity(
    shape: Sequence[int] = (), *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> Float[Tensor, "*batch 2 3"]:
    """Gives poses that leave every point where it is, ``(*shape, 2, 3)``."""
    return torch.eye(2, 3, dtype=dtype, device=device).expand(*shape, 2, 3).clone()


def from_parameters(
    angle: Float[Tensor, "*batch"],
    scale: Float[Tensor, "*batch 2"],
    shear: Float[Tensor, "*batch"],
    translation: Float[Tensor, "*batch 2"],
) -> Float[Tensor, "*batch 2 3"]:
    """Builds poses that scale, then shear, then turn, then move.

    ``L = R(angle) [[1, shear], [0, 1]] diag(scale)``, ``t = translation``.

    Args:
        angle: in radians; positive turns clockwise as seen, from x towards y, which points down.
        scale: along x and along y, above 1 enlarges.
        shear: how far x moves per y.
        translation: ``t``, along x and along y.
    """
    cos, sin = torch.cos(angle), torch.sin(angle)
    x, y = scale.unbind(-1)
    # the columns of L: where the picture's x and y axes go
    to_x = torch.stack([cos * x, sin * x], -1)
    to_y = torch.stack([(cos * shear - sin) * y, (sin * shear + cos) * y], -1)
    return torch.stack([to_x, to_y, translation], -1)


def homogeneous(pose: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch 3 3"]:
    """Adds the row (0, 0, 1) of homogeneous coordinates."""
    last = torch.eye(3, dtype=pose.dtype, device=pose.device)[2:].expand(*pose.shape[:-2], 1, 3)
    return torch.cat([pose, last], -2)


def compose(a: Float[Tensor, "*#batch 2 3"], b: Float[Tensor, "*#batch 2 3"]) -> Float[Tensor, " ..."]:
    """Gives the pose that applies ``b`` first and ``a`` after it: ``A B`` in homogeneous coordinates.

    With ``a`` a parent's pose and ``b`` a part's place in it, this is the part's pose on the canvas,
    ``A_child = A_parent M``. (Smith et al., 2021), Sec. 1.

    Args:
        a: the outer poses.
        b: the inner poses; the two broadcast.
    """
    linear = a[..., :2]
    moved = linear @ b
    return torch.cat([moved[..., :2], moved[..., 2:] + a[..., 2:]], -1)


def invert(a: Float[Tensor, "*batch 2 3"], least_det: float = 1e-6) -> Float[Tensor, "*batch 2 3"]:
    """Gives the pose that undoes ``a``: ``[L^-1 | -L^-1 t]``, exact where ``|det L| >= least_det``.

    A flatter pose has no usable inverse; its determinant is taken as ``least_det`` (with its sign), which
    keeps values and gradients finite. ``warp`` of such a pose paints next to nothing, as it should.

    Args:
        a: poses.
        least_det: the smallest determinant taken at its word: the default is a picture shrunk to a
        thousandth.
    """
    (p, q, x), (r, s, y) = (row.unbind(-1) for row in a.unbind(-2))
    det = p * s - q * r
    floor = torch.where(det < 0, -least_det, least_det).to(det.dtype)
    det = torch.where(det.abs() < least_det, floor, det)
    top = torch.stack([s, -q, q * y - s * x], -1)
    bottom = torch.stack([-r, p, r * x - p * y], -1)
    return torch.stack([top, bottom], -2) / det[..., None, None]


def middles(pose: Float[Tensor, "batch 2 3"], size: tuple[int, int]) -> Float[Tensor, "batch height width 2"]:
    """Gives where poses map the middles of a canvas' pixels: ``torch.nn.functional.affine_grid`` without a product.

    Args:
        pose: from the canvas.
        size: height and width of the canvas in pixels.
    """
    y, x = (torch.arange(1 - n, n, 2, dtype=pose.dtype, device=pose.device) / n for n in size)
    to_x, to_y, start = pose[:, None, None].unbind(-1)
    return torch.addcmul(start + to_y * y[:, None, None], to_x, x[:, None])


def warp(
    picture: Float[Tensor, "*batch channels height width"],
    pose: Float[Tensor, "*batch 2 3"],
    size: tuple[int, int],
) -> Float[Tensor, "*batch channels canvas_height canvas_width"]:
    """Paints each picture on an empty canvas where its pose puts it; zero wherever it does not reach.

    ``canvas(q) = picture(A^-1 q)``, read by bilinear interpolation: the pose maps picture to canvas (the
    other way round from ``torch.nn.functional.affine_grid``). (Smith et al., 2021), Sec. 2.1.

    Args:
        picture: what is painted (``T``, or its alpha channel).
        pose: ``A``.
        size: height and width of the canvas in pixels.
    """
    batch = picture.shape[:-3]
    picture = picture.reshape(-1, *picture.shape[-3:])
    back = invert(pose).reshape(-1, 2, 3)
    points = middles(back, size)
    # from 2 on, a point lies outside any picture by a pixel or more; farther ones would overflow as integers
    painted = functional.grid_sample(picture, points.clamp(-3, 3), align_corners=False)
    return painted.reshape(*batch, *painted.shape[1:])


def over(
    layers_rgb: Float[Tensor, "*batch layers channels height width"],
    alpha: Float[Tensor, "*batch layers #channels height width"],
) -> Float[Tensor, "*batch channels height width"]:
    """Paints layers over each other on an opaque black ground, the first lowest, the last on top.

    ``P <- C_i alpha_i + P (1 - alpha_i)``. (Smith et al., 2021), Sec. 2.1. On an opaque ground the painted
    alpha is 1 everywhere, so the paper's division by it, 0 / 0 where nothing has been painted, falls away.

    Args:
        layers_rgb: colours of the layers (``C``), any number of channels.
        alpha: how much each layer covers, 0 to 1, with one channel or as many as the colours.
    """
    painted = torch.zeros_like(layers_rgb.select(-4, 0))
    for colour, cover in zip(layers_rgb.unbind(-4), alpha.unbind(-4), strict=True):
        painted = torch.lerp(painted, colour, cover)
    return painted
