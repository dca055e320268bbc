"""Tells where a picture file ends, so that a file which is a picture and something else is refused."""

from __future__ import annotations

import re
import struct

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"

PARTS = 20_000
"""Of which a file is made at most; real ones have hundreds, and each takes time."""
MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]")
"""What ends a run of pixels: neither a byte of them, nor filling, nor a marker that stands alone."""


def kind(data: bytes) -> str | None:
    """Tells PNG, JPEG and WebP by their first bytes; ``None`` is anything else."""
    if data.startswith(PNG):
        return "PNG"
    if data.startswith(JPEG):
        return "JPEG"
    return "WebP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def end(data: bytes) -> int | None:
    """Gives the length of the picture at the start of a file; ``None`` where it is cut short or in too many parts."""
    return {"PNG": _png, "JPEG": _jpegs, "WebP": _webp}[kind(data) or "PNG"](data)


def _png(data: bytes) -> int | None:
    at = len(PNG)
    for _ in range(PARTS):
        if at + 12 > len(data):
            return None
        length, name = struct.unpack(">I4s", data[at : at + 8])
        at += 12 + length
        if name == b"IEND":
            return at if at <= len(data) else None
    return None


def _webp(data: bytes) -> int | None:
    stop = 8 + struct.unpack("<I", data[4:8])[0]
    return stop if stop <= len(data) else None


def _jpegs(data: bytes) -> int | None:
    """Walks over one JPEG, and over those that cameras put behind it (previews, gain maps)."""
    at = 0
    for _ in range(PARTS):
        found = MARKER.search(data, at)
        if found is None:
            return None
        at = found.end()
        if found[0] != b"\xff\xd9":  # a part that tells its length
            if at + 2 > len(data):
                return None
            at += struct.unpack(">H", data[at : at + 2])[0]
        elif not data.startswith(JPEG, at):  # the end of the last picture
            return at
    return None
