"""Decodes a picture that came over the network; whatever could harm is refused before a pixel is decoded."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

from PIL import Image
from torch import Tensor

from gencaps.data.pictures import read_picture
from gencaps.errors import GencapsError
from gencaps.service.limits import LONGEST, SMALL_BYTES, SMALL_PIXELS, THINNEST, UPLOAD_BYTES
from gencaps.service.problems import Problem, refusal
from gencaps.service.whole import end, kind

Apart = Callable[[Callable[[], Any]], Any]
"""Does slow work where nobody waits behind it."""


class Header(NamedTuple):
    """What the first bytes of a picture say."""

    width: int
    height: int
    moving: bool


def open_picture(data: bytes, field: str, fit: Callable[[Image.Image], Tensor], apart: Apart) -> Tensor:
    """Decodes a picture and brings it to a model; one that takes its time is decoded apart from the rest."""
    if len(data) > SMALL_BYTES:
        return apart(lambda: fit(decode(data, field, _header(data))))
    header = _header(data)
    if header is not None and header.width * header.height > SMALL_PIXELS:
        return apart(lambda: fit(decode(data, field, header)))
    return fit(decode(data, field, header))


def decode(data: bytes, field: str, header: Header | None) -> Image.Image:
    """Opens one PNG, JPEG or WebP of at most 10 MB and 32 megapixels, upright, as ``L`` or ``RGB``."""
    check_bytes(len(data), field)
    found = kind(data)
    if found is None:
        what = "is empty" if not data else "is no PNG, JPEG or WebP"
        raise Problem(415 if data else 422, f"{field} {what}", field=field, remedy="send a PNG, JPEG or WebP file")
    stop = end(data)
    if stop is None:
        raise Problem(422, f"{field} is cut short or damaged", field=field, remedy="send the whole file")
    if data[stop:].strip(b"\0"):
        raise Problem(
            422,
            f"{field} has {len(data) - stop:,} bytes behind its end, which are no part of a {found}",
            field=field,
            remedy="save the picture again and send that",
        )
    if header is not None:
        _check_shape(header, field)
    try:
        return read_picture(io.BytesIO(data))
    except GencapsError as error:
        raise refusal(error, field) from None


def _header(data: bytes) -> Header | None:
    """Reads a picture's header; ``None`` where that cannot be read, which decoding then says."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as image:
            return Header(*image.size, image.format != "MPO" and getattr(image, "n_frames", 1) > 1)
    except Exception:  # plugins raise what they like on damaged headers
        return None


def check_bytes(length: int, field: str) -> None:
    """Refuses a picture of too many bytes."""
    if length > UPLOAD_BYTES:
        most = UPLOAD_BYTES >> 20
        raise Problem(413, f"{field} has more than {most} MB", field=field, remedy=f"send at most {most} MB")


def _check_shape(header: Header, field: str) -> None:
    """Refuses strips that show nothing once cropped to a square, and what moves; other faults are found on reading."""
    width, height, moving = header
    if max(width, height) > LONGEST or max(width, height) > THINNEST * min(width, height):
        raise Problem(
            422,
            f"{field} is {width} x {height} pixels",
            field=field,
            remedy=f"send at most {LONGEST:,} pixels a side, and no side more than {THINNEST} times the other",
        )
    if moving:
        raise Problem(422, f"{field} is animated", field=field, remedy="send one picture that stands still")
