"""Opens one picture from outside, safely, and turns it into pixels."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from gencaps.errors import GencapsError

MAX_PIXELS = 32 * 2**20
"""Larger pictures are refused before they are decoded."""
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
GREY = ("1", "L", "LA", "La", "I;16", "I;16L", "I;16B", "I;16N")
REFUSED = {
    "I": "32-bit whole numbers",
    "F": "floating-point pixels",
    "LAB": "Lab colour",
    "HSV": "HSV colour",
}


@runtime_checkable
class BinaryFile(Protocol):
    """An open file, an upload or bytes in memory: whatever can be read and wound back."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...


class Header(NamedTuple):
    """What the first bytes of a picture say, before any pixel is decoded."""

    width: int
    height: int
    grey: bool
    conversions: tuple[str, ...]
    """What will be converted on reading, such as ``CMYK converted to RGB``."""


def _name(source: str | Path | BinaryFile) -> str:
    return str(source) if isinstance(source, str | Path) else str(getattr(source, "name", "the picture"))


def _zero_sized(head: bytes) -> bool:
    """Says whether a PNG, GIF or BMP has no width or no height, of which Pillow only says 'unknown'."""
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        return 0 in struct.unpack(">II", head[16:24])
    if head[:3] == b"GIF" and len(head) >= 10:
        return 0 in struct.unpack("<HH", head[6:10])
    if head[:2] == b"BM" and len(head) >= 26:
        return 0 in struct.unpack("<ii", head[18:26])
    return False


def _why_unknown(source: str | Path | BinaryFile) -> str:
    """Looks at the first bytes of what Pillow does not know, to say what it is."""
    try:
        if isinstance(source, str | Path):
            with open(source, "rb") as file:
                head = file.read(512)
        else:
            source.seek(0)
            head = source.read(512)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if not head:
        return "is empty"
    if _zero_sized(head):
        return "is 0 x 0 pixels"
    if all(byte >= 32 or byte in b"\t\n\r\f" for byte in head):
        return "is text, not a picture"
    return "is no picture of a known kind (PNG, JPEG, WebP, BMP, GIF, TIFF) or is damaged"


def _open(source: str | Path | BinaryFile) -> Image.Image:
    """Opens a picture without decoding it; one line says what is wrong with one that cannot be used."""
    name = _name(source)
    try:
        image = Image.open(cast(str | Path | IO[bytes], source), formats=FORMATS)
    except UnidentifiedImageError:
        raise GencapsError(f"{name} {_why_unknown(source)}; replace or remove it") from None
    except Image.DecompressionBombError:
        raise GencapsError(f"{name} has more than {MAX_PIXELS >> 20} megapixels; scale it down") from None
    except OSError as error:
        raise GencapsError(f"{name} cannot be read: {error.strerror or error}; check the path") from None
    except Exception as error:  # plugins raise what they like on damaged headers
        raise GencapsError(f"{name} is damaged ({error!s:.100}); replace or remove it") from None
    if 0 in image.size:
        raise GencapsError(f"{name} is {image.width} x {image.height} pixels; replace or remove it")
    if image.width * image.height > MAX_PIXELS:
        raise GencapsError(
            f"{name} is {image.width} x {image.height} pixels, more than {MAX_PIXELS >> 20} megapixels; scale it down"
        )
    if image.mode in REFUSED:
        raise GencapsError(f"{name} holds {REFUSED[image.mode]}; save it with 8 bits a channel")
    return image


def _is_16_bit(image: Image.Image) -> bool:
    # Pillow keeps 16 bits for grey only; a deep colour picture shows in how its tiles are to be unpacked
    # (its unpacker's name alone or first among its arguments: the others are numbers that mean other things)
    given = [tile[3] for tile in getattr(image, "tile", ())]
    unpackers = [word[0] if isinstance(word, tuple) and word else word for word in given]
    return "16" in image.mode or any("16" in word for word in unpackers if isinstance(word, str))


def _conversions(image: Image.Image) -> tuple[str, ...]:
    """Lists what reading this picture changes in it."""
    found = []
    if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:
        found.append("animated or many pages: the first taken")
    if image.mode == "CMYK":
        found.append("CMYK converted to RGB")
    if _is_16_bit(image):
        found.append("16 bits a channel scaled to 8")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        found.append("transparency laid over white")
    elif image.mode == "P":
        found.append("palette converted to RGB")
    return tuple(found)


def read_header(path: Path) -> Header:
    """Reads a picture's size and kind without decoding it."""
    with _open(path) as image:
        try:
            return Header(image.width, image.height, image.mode in GREY, _conversions(image))
        except Exception as error:  # counting the frames of a damaged file can fail in any way
            raise GencapsError(f"{path} is damaged ({error!s:.100}); replace or remove it") from None


def _plain(image: Image.Image) -> Image.Image:
    """Brings any accepted mode to ``L`` or ``RGB``."""
    if "16" in image.mode:
        # 65535 / 257 = 255: the 8-bit value of which the 16-bit one is the widening
        return Image.fromarray((np.asarray(image).astype(np.float32) / 257).round().astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        flat = Image.alpha_composite(white, rgba)
        return flat.convert("L" if image.mode in ("LA", "La", "L", "1") else "RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def plain_picture(image: Image.Image) -> Image.Image:
    """Brings an opened picture to ``L`` or ``RGB`` by the same rules as one that is read from a file."""
    if 0 in image.size:
        raise GencapsError(f"a picture of {image.width} x {image.height} pixels shows nothing: give another")
    if image.mode in REFUSED:
        raise GencapsError(f"a picture holds {REFUSED[image.mode]}; convert it to 8 bits a channel")
    return _plain(ImageOps.exif_transpose(image))


def read_picture(source: str | Path | BinaryFile, *, channels: int | None = None) -> Image.Image:
    """Opens one picture and decodes its first frame to ``L`` or ``RGB``, upright.

    Takes PNG, JPEG, WebP, BMP, GIF and TIFF of at most 32 megapixels. Palettes, CMYK and 16-bit pixels are
    converted, transparency is laid over white, the camera's rotation is applied. ``channels`` (1 or 3)
    fixes the mode; without it grey stays grey.
    """
    name = _name(source)
    with _open(source) as image:
        try:
            image.load()
            plain = _plain(ImageOps.exif_transpose(image))
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # decoders raise what they like on damaged data
            raise GencapsError(f"{name} is damaged ({error!s:.100}); replace or remove it") from None
    return plain if channels is None else plain.convert({1: "L", 3: "RGB"}[channels])


def to_tensor(image: Image.Image, size: int, channels: int) -> UInt8[Tensor, "channels size size"]:
    """Crops the centred square of the shorter side, then resizes it with antialiasing."""
    image = image.convert({1: "L", 3: "RGB"}[channels])
    if image.size != (size, size):
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        # cropped before, because a box given to resize lets the filter look outside it
        square = image.crop((left, top, left + side, top + side))
        image = square.resize((size, size), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    return torch.from_numpy(pixels.reshape(size, size, channels).transpose(2, 0, 1).copy())
