"""Draws pictures as grids, strips and animations, in files and in the terminal."""

from __future__ import annotations

import io
import math
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from gencaps.errors import GencapsError, nearest
from gencaps.files import write_atomically

Drawable = Float[Tensor, "n channels height width"] | UInt8[Tensor, "n channels height width"]
"""Pictures as numbers from 0 to 1, or as bytes."""

GAP = 2
"""Pixels between pictures, and around them."""
CELL = 60
"""Pixels a side that small pictures are enlarged to, about."""
LABEL_SIZE, CAPTION_SIZE = 14, 12
PAPER, INK = (255, 255, 255), (40, 40, 40)
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".bmp": "BMP", ".gif": "GIF"}
RAMP = " .:-=+*#%@"


def to_bytes(x: Drawable) -> UInt8[np.ndarray, "n height width channels"]:
    """Turns pictures into bytes, channels last: ``round(255 x)``, clamped; what is not a number is black."""
    if x.shape[1] not in (1, 3):
        raise GencapsError(f"a picture has 1 channel (grey) or 3 (colour), not {x.shape[1]}: pick channels first")
    if x.dtype != torch.uint8:
        x = (x.detach().float().nan_to_num(0.0, 1.0, 0.0).clamp(0, 1) * 255).round().to(torch.uint8)
    return x.cpu().permute(0, 2, 3, 1).contiguous().numpy()


def to_images(x: Drawable) -> list[Image.Image]:
    """Turns pictures into Pillow's, grey or colour."""
    return [Image.fromarray(a[..., 0] if a.shape[-1] == 1 else a) for a in to_bytes(x)]


def grid(
    x: Drawable,
    columns: int,
    *,
    scale: int | None = None,
    row_labels: Sequence[str] | None = None,
    captions: Sequence[str] | None = None,
) -> Image.Image:
    """Lays pictures out row by row, 2 px apart.

    Args:
        x: the pictures, in reading order.
        columns: how many stand side by side.
        scale: how many times each pixel is repeated; ``None`` enlarges small pictures to about 60 px.
        row_labels: one text to the left of each row.
        captions: one text under each picture, cut to its width; it may have several lines.
    """
    n, _, h, w = x.shape
    _check_layout(n, columns)
    scale = _scale(h, w, scale)
    rows, cell_h, cell_w = -(-n // columns), h * scale, w * scale
    if row_labels is not None and len(row_labels) != rows:
        raise ValueError(f"{rows} rows need {rows} labels, not {len(row_labels)}")
    if captions is not None and len(captions) != n:
        raise ValueError(f"{n} pictures need {n} captions, not {len(captions)}")

    label_font, caption_font = ImageFont.load_default(LABEL_SIZE), ImageFont.load_default(CAPTION_SIZE)
    left = max((round(label_font.getlength(s)) + 8 for s in row_labels or () if s), default=0)
    lines = max((s.count("\n") + 1 for s in captions or () if s), default=0)
    line_h = CAPTION_SIZE + 3
    below = lines * line_h + 2 if lines else 0

    page = Image.new("RGB", (left + GAP + columns * (cell_w + GAP), GAP + rows * (cell_h + below + GAP)), PAPER)
    draw = ImageDraw.Draw(page)
    for i, image in enumerate(to_images(x)):
        row, column = divmod(i, columns)
        corner = (left + GAP + column * (cell_w + GAP), GAP + row * (cell_h + below + GAP))
        page.paste(image.resize((cell_w, cell_h), Image.Resampling.NEAREST), corner)
        for k, line in enumerate(captions[i].split("\n") if captions else ()):
            text = _fitted(line, caption_font.getlength, cell_w)
            at = (corner[0] + cell_w / 2, corner[1] + cell_h + 1 + k * line_h)
            draw.text(at, text, fill=INK, font=caption_font, anchor="ma")
    for row, label in enumerate(row_labels or ()):
        middle = GAP + row * (cell_h + below + GAP) + cell_h / 2
        draw.text((left - 4, middle), label, fill=INK, font=label_font, anchor="rm")
    return page


def strip(x: Drawable, *, scale: int | None = None, captions: Sequence[str] | None = None) -> Image.Image:
    """Lays pictures out in one row."""
    return grid(x, x.shape[0], scale=scale, captions=captions)


def save_picture(image: Image.Image, path: Path | str) -> Path:
    """Writes a picture in the format that the file's ending names; a file half written is never seen."""
    return _save(image, Path(path), FORMATS)


def save_gif(x: Drawable, path: Path | str, seconds: float = 2.0, *, scale: int | None = None) -> Path:
    """Writes pictures as an animation that takes ``seconds`` and then begins again."""
    frames, options = _frames(x, seconds, scale)
    return _save(frames[0], Path(path), {".gif": "GIF"}, **options)


def gif(x: Drawable, seconds: float = 2.0, *, scale: int | None = None) -> bytes:
    """Gives the bytes that ``save_gif`` writes."""
    frames, options = _frames(x, seconds, scale)
    file = io.BytesIO()
    frames[0].save(file, "GIF", **options)
    return file.getvalue()


def _frames(x: Drawable, seconds: float, scale: int | None) -> tuple[list[Image.Image], dict[str, Any]]:
    """Gives the pictures of an animation, enlarged, and what Pillow is to be told."""
    _check_layout(x.shape[0], 1)
    if not 0 < seconds < math.inf:
        raise GencapsError(f"seconds must be above 0, not {seconds}")
    h, w = x.shape[2:]
    scale = _scale(h, w, scale)
    frames = [image.resize((w * scale, h * scale), Image.Resampling.NEAREST) for image in to_images(x)]
    # browsers slow a frame shorter than 20 ms down to 100 ms
    each_ms = max(20, round(1000 * seconds / len(frames)))
    return frames, {"save_all": True, "append_images": frames[1:], "duration": each_ms, "loop": 0}


def _save(image: Image.Image, path: Path, formats: dict[str, str], **options: Any) -> Path:
    check_picture(path, formats)
    file = io.BytesIO()
    image.save(file, formats[path.suffix.lower()], **options)
    write_atomically(path, file.getvalue())
    return path


def check_picture(path: Path, formats: dict[str, str] = FORMATS) -> None:
    """Refuses a file name or a place that no picture can be written to, before any work is done for it."""
    if path.suffix.lower() not in formats:
        what = f"'{path.suffix}' is not a picture format" if path.suffix else "the name has no ending"
        raise GencapsError(f"cannot write {path}: {what}{nearest(path.suffix.lower(), formats)}")
    check_target(path)


def check_target(path: Path) -> None:
    """Refuses a place that no file can be written to, before any work is done for it."""
    folder = path.parent
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        raise GencapsError(f"cannot write {path}: {folder} does not exist; make the folder first") from None
    except OSError as error:
        raise GencapsError(f"cannot write {path}: {folder}: {error.strerror}; name another folder") from None
    if not stat.S_ISDIR(found.st_mode):
        raise GencapsError(f"cannot write {path}: {folder} is not a folder; name another")
    if os.path.isdir(path):
        raise GencapsError(f"cannot write {path}: it is a folder; name a file in it")


def terminal(x: Drawable, columns: int, *, width: int = 80, color: bool = True) -> str:
    """Draws pictures in the terminal, two pixels to a character.

    Pictures are shrunk until a row fits ``width`` characters, one pixel apart (none where that alone saves
    them from being shrunk); fewer stand in a row where they would be less than 4 pixels wide.

    Args:
        x: the pictures, in reading order.
        columns: how many stand side by side.
        width: characters a line.
        color: half blocks in 24-bit colour; if not, plain ASCII from dark (a space) to light (``@``).
    """
    n, _, h, w = x.shape
    _check_layout(n, columns)
    columns = max(1, min(columns, n, (width + 1) // 5))
    gap = 0 if columns * w <= width < columns * (w + 1) - 1 else 1
    cell_w = max(1, min(w, (width - gap * (columns - 1)) // columns))
    cell_h = max(1, round(h * cell_w / w))
    rows, tall = -(-n // columns), cell_h + cell_h % 2 + 2

    pixels = torch.from_numpy(to_bytes(x)).permute(0, 3, 1, 2).float()
    # NaN stands for "nothing drawn here": gaps, the line between two rows, the places after the last picture
    canvas = torch.full((rows * columns, 3, tall, cell_w + gap), torch.nan)
    canvas[:n, :, :cell_h, :cell_w] = torch.nn.functional.adaptive_avg_pool2d(pixels, (cell_h, cell_w))
    canvas = canvas.unflatten(0, (rows, columns)).permute(0, 3, 1, 4, 2).reshape(rows * tall, -1, 3)
    canvas = canvas[:-2, : canvas.shape[1] - gap]
    return "\n".join(map(_colored_line if color else _plain_line, canvas[::2], canvas[1::2]))


def _plain_line(top: Float[Tensor, "width 3"], bottom: Float[Tensor, "width 3"]) -> str:
    light = torch.stack([top, bottom]).nanmean((0, 2)).nan_to_num(0.0) / 255
    return "".join(RAMP[i] for i in (light * (len(RAMP) - 1)).round().int().tolist())


def _colored_line(top: Float[Tensor, "width 3"], bottom: Float[Tensor, "width 3"]) -> str:
    parts: list[str] = []
    state = ""
    for a, b in zip(top.round().tolist(), bottom.round().tolist(), strict=True):
        # a picture of an odd height ends in the upper half of its last line
        if math.isnan(a[0]):
            code, block = "\x1b[0m", " "
        elif math.isnan(b[0]):
            code, block = f"\x1b[0;38;2;{_rgb(a)}m", "▀"
        else:
            code, block = f"\x1b[38;2;{_rgb(a)};48;2;{_rgb(b)}m", "▀"
        parts.append(block if code == state else code + block)
        state = code
    return "".join(parts) + "\x1b[0m"


def _rgb(color: Sequence[float]) -> str:
    return ";".join(str(int(c)) for c in color)


def _scale(h: int, w: int, asked: int | None) -> int:
    if asked is not None and asked < 1:
        raise GencapsError(f"scale must be 1 or more, not {asked}")
    return asked or max(1, round(CELL / max(h, w)))


def _check_layout(n: int, columns: int) -> None:
    if n < 1:
        raise GencapsError("there is no picture to draw: give at least one")
    if columns < 1:
        raise GencapsError(f"columns must be 1 or more, not {columns}")


def _fitted(text: str, length: Callable[[str], float], room: int) -> str:
    if length(text) <= room:
        return text
    while text and length(text + "…") > room:
        text = text[:-1]
    return text + "…"


def tinted(
    shares: Float[Tensor, "n painters height width"], picture: Float[Tensor, "n channels height width"]
) -> Float[Tensor, "n 3 height width"]:
    """Colours pictures by who painted each pixel: a hue a painter, as bright as the picture."""
    place = torch.arange(shares.shape[1], dtype=shares.dtype, device=shares.device)
    angle = 2 * math.pi * (place * 0.618034 % 1)  # the golden section keeps neighbours' hues far apart
    third = 2 * math.pi / 3
    colours = 0.5 + 0.5 * torch.stack([torch.cos(angle - k * third) for k in range(3)], 1)
    colours = colours / colours.amax(1, keepdim=True)
    whole = shares / shares.sum(1, keepdim=True).clamp(min=1e-6)
    return torch.einsum("nphw,pc->nchw", whole, colours) * picture.mean(1, keepdim=True)
