"""Puts pictures into the page itself, as PNG bytes in base64."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

from jaxtyping import Float
from PIL import Image
from torch import Tensor

from gencaps.figures import to_images

LARGEST = 64
"""Pixels a side; larger pictures are shrunk to it so that the page stays small."""
PIXELATED = 32
"""Up to this many pixels a side a picture is shown larger than it is, in sharp squares."""


def data_uri(picture: Float[Tensor, "channels height width"], largest: int = LARGEST) -> str:
    """Writes a picture as an address that holds the picture."""
    (image,) = to_images(picture[None])
    if max(image.size) > largest:
        image.thumbnail((largest, largest), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def img(picture: Float[Tensor, "channels height width"], alt: str, largest: int = LARGEST) -> str:
    """Writes an ``img`` element that needs no other file."""
    h, w = picture.shape[1:]
    sharp = ' class="px"' if max(h, w) <= PIXELATED else ""
    return f'<img{sharp} src="{data_uri(picture, largest)}" width="{w}" height="{h}" alt="{escape(alt)}">'


def row(pictures: Float[Tensor, "n channels height width"], alts: Sequence[str]) -> str:
    """Lays pictures side by side; they share the width of the page."""
    images = "".join(img(p, alt) for p, alt in zip(pictures, alts, strict=True))
    return f'<div class="row" style="--n:{len(pictures)}">{images}</div>'


def spread(n: int, most: int) -> list[int]:
    """Picks at most ``most`` of ``n`` places, evenly, the first and the last among them."""
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
