"""A contact sheet: some pictures of a set on one page, each with its label below."""

from __future__ import annotations

import math

import torch
from jaxtyping import Int
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from gencaps.data.images import ImageSet

CELL = 96
"""Smallest side of a picture on the sheet; smaller pictures are enlarged without smoothing."""
MARGIN, LINE = 6, 13


def choose(set: ImageSet, n: int) -> Int[Tensor, " k"]:
    """Picks ``n`` pictures: the first of every class, the second of every class, and so on."""
    if set.labels == "attributes":
        return torch.arange(min(n, len(set)))
    order = torch.argsort(set.y, stable=True)
    sizes = torch.bincount(set.y)
    rank = torch.empty(len(set), dtype=torch.int64)
    rank[order] = torch.arange(len(set)) - (sizes.cumsum(0) - sizes)[set.y[order]]
    return torch.argsort(rank * len(sizes) + set.y)[:n]


def label(set: ImageSet, i: int) -> list[str]:
    """Says what is known of picture i, in lines: its class, or the attributes that it has."""
    if set.labels == "classes":
        return [set.names[int(set.y[i])]]
    names = [name.replace("_", " ") for name, value in zip(set.names, set.y[i].tolist(), strict=True) if value]
    return names[:4] + ([f"+ {len(names) - 4}"] if len(names) > 4 else [])


def contact_sheet(set: ImageSet, n: int = 64) -> Image.Image:
    """Lays ``n`` pictures out on one page."""
    chosen = choose(set, n)
    part = set[chosen]
    height, width = part.x.shape[-2:]
    factor = max(1, math.ceil(CELL / max(height, width)))
    lines = 1 if set.labels == "classes" else 5
    # classes stand in columns where there are few enough of them
    few = set.labels == "classes" and 4 <= len(set.names) <= 12
    columns = min(len(part), len(set.names) if few else math.ceil(math.sqrt(len(part))))
    rows = math.ceil(len(part) / columns)
    step_x, step_y = width * factor + MARGIN, height * factor + MARGIN + lines * LINE
    page = Image.new("RGB", (columns * step_x + MARGIN, rows * step_y + MARGIN), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(11)
    pixels = part.x.permute(0, 2, 3, 1).cpu().numpy()
    for i in range(len(part)):
        left, top = MARGIN + i % columns * step_x, MARGIN + i // columns * step_y
        picture = Image.fromarray(pixels[i, :, :, 0] if pixels.shape[-1] == 1 else pixels[i])
        page.paste(picture.resize((width * factor, height * factor), Image.Resampling.NEAREST), (left, top))
        for k, text in enumerate(label(part, i)):
            place = (left, top + height * factor + 1 + k * LINE)
            pen.text(place, _fit(text, width * factor, font), "#333333", font)
    return page


def _fit(text: str, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    """Shortens a text until it is no wider than its picture."""
    while len(text) > 1 and font.getlength(text) > width:
        text = text[:-2] + "…" if text.endswith("…") else text[:-1] + "…"
    return text
