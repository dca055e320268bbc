"""Turns pictures in whatever form a user has them into one batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from gencaps.data.pictures import plain_picture, read_picture, to_tensor
from gencaps.errors import GencapsError

Given = str | Path | Image.Image | np.ndarray | Tensor | Sequence[Any]
"""One picture or many: paths, PIL pictures, arrays (bytes 0 to 255 or floats 0 to 1), or a list of these."""
LUMA = (0.299, 0.587, 0.114)
"""How much of each colour a grey picture takes (ITU-R BT.601), as Pillow does."""


def as_pictures(given: Any, size: int, channels: int) -> Float[Tensor, "n channels height width"]:
    """Turns what a user has into a batch with values 0 to 1, of one size and channel count."""
    if isinstance(given, str | Path):
        return to_tensor(read_picture(Path(given)), size, channels)[None].float() / 255.0
    if isinstance(given, Image.Image):
        return to_tensor(plain_picture(given), size, channels)[None].float() / 255.0
    if isinstance(given, np.ndarray):
        return _fit(_planes(_tensor(given), channels_last=True), size, channels)
    if isinstance(given, Tensor):
        return _fit(_planes(given, channels_last=False), size, channels)
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise GencapsError(
            f"no picture can be made of {type(given).__name__}: give a path, a PIL picture, an array or a list of these"
        )
    parts = [as_pictures(one, size, channels) for one in given]
    if not parts:
        raise GencapsError("no picture was given: give at least one")
    return torch.cat(parts)


def _tensor(given: np.ndarray) -> Tensor:
    """Copies an array, because torch warns of arrays that it may not write to."""
    try:
        return torch.from_numpy(np.array(given, given.dtype.newbyteorder("="), order="C"))
    except TypeError:
        raise GencapsError(
            f"an array of {given.dtype} holds no pictures: give bytes 0 to 255 (uint8) or floats 0 to 1"
        ) from None


def _planes(x: Tensor, channels_last: bool) -> Tensor:
    """Brings an array of two to four axes to (n, channels, height, width), values 0 to 1."""
    shape = tuple(x.shape)
    if x.ndim == 4 and channels_last and shape[-1] in (1, 3):
        x = x.permute(0, 3, 1, 2)
    elif x.ndim == 3 and channels_last and shape[-1] in (1, 3):
        x = x.permute(2, 0, 1)[None]
    elif x.ndim == 3 and not channels_last and shape[0] in (1, 3):
        x = x[None]
    elif x.ndim == 3 and channels_last and shape[-1] not in (2, 4):  # 2 and 4 are channels with transparency
        x = x[:, None]
    elif x.ndim == 2:
        x = x[None, None]
    if x.ndim != 4 or x.shape[1] not in (1, 3) or 0 in shape:
        wanted = "(n, height, width, channels)" if channels_last else "(n, channels, height, width)"
        raise GencapsError(f"an array of shape {shape} holds no pictures: give {wanted} with 1 or 3 channels")
    if x.dtype == torch.uint8:
        return x.float() / 255.0
    x = x.float()
    low, high = x.min().item(), x.max().item()
    if not (low >= 0.0 and high <= 1.0):
        raise GencapsError(
            f"an array of pictures runs from {low:g} to {high:g}: give bytes 0 to 255 (uint8) or floats 0 to 1"
        )
    return x


def _fit(x: Tensor, size: int, channels: int) -> Float[Tensor, "n channels height width"]:
    """Scales to a size and converts between grey and colour."""
    if x.shape[1] != channels:
        grey = channels == 1
        x = torch.einsum("nchw,c->nhw", x, x.new_tensor(LUMA))[:, None] if grey else x.expand(-1, 3, -1, -1)
    if x.shape[-2:] != (size, size):
        side = min(x.shape[-2:])
        top, left = (x.shape[-2] - side) // 2, (x.shape[-1] - side) // 2
        x = x[..., top : top + side, left : left + side]
        x = torch.nn.functional.interpolate(x, (size, size), mode="bilinear", antialias=True, align_corners=False)
    return x.clamp(0.0, 1.0)
