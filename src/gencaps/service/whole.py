"""Tells where a picture file ends, so that a file which is a picture and something else is refused."""

from __future__ import annotations

import struct

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"


def kind(data: bytes) -> str | None:
    """Tells PNG, JPEG and WebP by their first bytes; ``None`` is anything else."""
    if data.startswith(PNG):
        return "PNG"
    if data.startswith(JPEG):
        return "JPEG"
    return "WebP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def end(data: bytes) -> int | None:
    """Gives the length of the picture at the start of a file; ``None`` where it is cut short."""
    return {"PNG": _png, "JPEG": _jpegs, "WebP": _webp}[kind(data) or "PNG"](data)


def _png(data: bytes) -> int | None:
    at = len(PNG)
    while at + 12 <= len(data):
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
    at: int | None = 0
    while at is not None and data.startswith(JPEG, at):
        at = _jpeg(data, at)
    return at


def _jpeg(data: bytes, start: int) -> int | None:
    at = start + 2
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 2 > len(data):
            return None
        marker = data[at + 1]
        if marker == 0xD9:  # the end of the picture
            return at + 2
        if marker == 0xFF:  # filling
            at += 1
        elif marker == 0 or marker == 1 or 0xD0 <= marker <= 0xD8:  # a byte of pixels, and markers that stand alone
            at += 2
        else:
            if at + 4 > len(data):
                return None
            at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
