"""Synthetic faces with known attributes, each with continuous styles: an edit can be checked, not admired."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from gencaps.data.face import LAYERS, head_frame, paint
from gencaps.data.images import ImageSet
from gencaps.data.progress import bar
from gencaps.data.splits import generator_of
from gencaps.errors import GencapsError, nearest

STYLES: dict[str, tuple[str, str, str]] = {
    "Eyeglasses": ("squareness", "thickness", "colour"),
    "Smiling": ("curvature", "openness", "width"),
    "Hat": ("height", "colour", "brim"),
    "Beard": ("length", "colour", "fullness"),
    "Bangs": ("length", "sweep", "colour"),
    "Long_Hair": ("length", "waves", "volume"),
    "Earrings": ("size", "drop", "colour"),
    "Rosy_Cheeks": ("strength", "size", "height"),
}
"""Every attribute with the names of its styles, in the order of ``draw``'s arguments."""
NAMES = tuple(STYLES)
NUISANCE = (
    "skin",
    "hair",
    "width",
    "right",
    "down",
    "scale",
    "tilt",
    "wall",
    "cloth",
    "iris",
    "eyes_apart",
    "eyes_open",
    "gaze",
    "brows",
)
"""What varies in every face whatever its attributes."""
BOXES = {layer.attribute: layer.box for layer in LAYERS if layer.attribute}
"""(left, top, right, bottom) of what an attribute may change, about the head."""


class Faces(NamedTuple):
    """The numbers that a face is drawn from."""

    attributes: UInt8[Tensor, "n attributes"]
    styles: Float[Tensor, "n attributes styles"]
    nuisance: Float[Tensor, "n nuisances"]


def sample(n: int, seed: int) -> Faces:
    """Draws the numbers of ``n`` faces: each attribute with probability one half, the rest uniform."""
    a, k, m = len(NAMES), 3, len(NUISANCE)
    u = torch.rand(n, a + a * k + m, generator=generator_of(seed))
    attributes, styles, nuisance = u.split([a, a * k, m], 1)
    return Faces((attributes < 0.5).to(torch.uint8), styles.view(n, a, k), nuisance)


def draw(
    attributes: UInt8[Tensor, "n attributes"] | Int[Tensor, "n attributes"] | Float[Tensor, "n attributes"],
    styles: Float[Tensor, "n attributes styles"],
    nuisance: Float[Tensor, "n nuisances"],
    size: int = 64,
    *,
    progress: bool = False,
) -> UInt8[Tensor, "n 3 size size"]:
    """Draws faces; the same numbers always give the same pictures.

    In double precision: in single, what libraries' versions round otherwise would move pixels by a grey level.

    Args:
        attributes: 0 or 1 for each of ``NAMES``.
        styles: three numbers in [0, 1] for each attribute (``STYLES``); without effect where it is 0.
        nuisance: a number in [0, 1] for each of ``NUISANCE``.
        size: side in pixels, 32 to 128.
        progress: shows a bar.
    """
    if not 32 <= size <= 128:
        raise GencapsError(f"faces of {size} pixels cannot be drawn; choose a size from 32 to 128")
    out = torch.empty(len(attributes), 3, size, size, dtype=torch.uint8, device=attributes.device)
    # few enough for the processor's cache, many enough that threads seldom wait for each other
    chunk = 2**18 // size**2
    with bar("drawing faces", len(out), progress) as advance:
        for start in range(0, len(out), chunk):
            here = slice(start, start + chunk)
            rgb = paint(
                dict(zip(NAMES, attributes[here].double().unbind(1), strict=True)),
                {name: style.unbind(1) for name, style in zip(NAMES, styles[here].double().unbind(1), strict=True)},
                dict(zip(NUISANCE, nuisance[here].double().unbind(1), strict=True)),
                size,
            )
            out[here] = (rgb.clamp(0, 1) * 255).round().to(torch.uint8)
            advance(len(rgb))
    return out


def region(name: str, nuisance: Float[Tensor, "n nuisances"], size: int) -> Bool[Tensor, "n size size"]:
    """Marks the pixels that an attribute and its styles may change; no pixel outside ever does."""
    if name not in BOXES:
        raise GencapsError(f"faces have no attribute '{name}'{nearest(name, BOXES)}")
    x, y, pixel = head_frame(dict(zip(NUISANCE, nuisance.unbind(1), strict=True)), size)
    left, top, right, bottom = BOXES[name]
    # an edge reaches half a pixel further than its shape
    return (x > left - pixel) & (x < right + pixel) & (y > top - pixel) & (y < bottom + pixel)


def faces(n: int, size: int = 64, seed: int = 0, *, progress: bool = False) -> ImageSet:
    """Draws a set of ``n`` faces with their attributes as labels."""
    numbers = sample(n, seed)
    return ImageSet("faces", draw(*numbers, size, progress=progress), numbers.attributes, NAMES, "attributes")
