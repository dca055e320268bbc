"""Pictures that could harm, or that are none, are refused with the reason."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gencaps.service.whole import end
from tests.service.helpers import complaint, encoded, text

URL = "/v1/models/digits/classify"
GREY = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def empty_png(width: int, height: int) -> bytes:
    """Makes a PNG that claims a size and holds next to nothing."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("page.html", "<script>alert(1)</script>")
    return file.getvalue()


def moving(kind: str) -> bytes:
    frames = [Image.fromarray(np.full((8, 8), 60 * k, np.uint8)).convert("RGB") for k in range(3)]
    return encoded(frames[0], kind, save_all=True, append_images=frames[1:], duration=50)


def sent(client: Any, data: bytes) -> list[Any]:
    """Sends a picture in both ways."""
    return [client.post(URL, files={"picture": data}), client.post(URL, json={"picture": text(data)})]


@pytest.mark.parametrize(
    ("data", "status", "word"),
    [
        (empty_png(60_000, 60_000), 422, "pixels"),
        (empty_png(16_000, 16_000), 422, "megapixels"),
        (empty_png(2**31 - 1, 2**31 - 1), 422, "picture"),
        (empty_png(0, 0), 422, "0 x 0"),
        (encoded(Image.new("L", (1, 100_000))), 422, "1 x 100000"),
        (encoded(Image.new("L", (100_000, 1))), 422, "100000 x 1"),
        (encoded(Image.new("L", (4, 500))), 422, "100 times"),
        (encoded(GREY)[:-20], 422, "cut short"),
        (empty_png(100, 100), 422, "damaged"),  # whole as a file, but its pixels are not all there
        (encoded(GREY, "JPEG")[:-40], 422, "cut short"),
        (encoded(GREY, "WEBP")[:-10], 422, "cut short"),
        (encoded(GREY) + archive(), 422, "behind its end"),
        (encoded(GREY, "JPEG") + archive(), 422, "behind its end"),
        (encoded(GREY, "WEBP") + archive(), 422, "behind its end"),
        (archive() + encoded(GREY), 415, "PNG, JPEG or WebP"),
        (moving("PNG"), 422, "animated"),
        (moving("WEBP"), 422, "animated"),
        (encoded(GREY, "GIF"), 415, "PNG, JPEG or WebP"),
        (encoded(GREY, "BMP"), 415, "PNG, JPEG or WebP"),
        (encoded(GREY, "TIFF"), 415, "PNG, JPEG or WebP"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "PNG, JPEG or WebP"),
        (b"\x89PNG\r\n\x1a\n", 422, "cut short"),
        (b"\xff\xd8\xff", 422, "cut short"),
        (b"\xff\xd8" + b"\xff" * 1_000_000, 422, "cut short"),
        (b"\xff\xd8" + b"\xff\xe0\0\2" * 100_000 + b"\xff\xd9", 422, "damaged"),  # nothing, in 100,000 parts
        (b"\x89PNG\r\n\x1a\n" + chunk(b"tEXt", b"") * 50_000 + chunk(b"IEND", b""), 422, "damaged"),
        (b"RIFF\0\0\0\0WEBP", 422, "picture"),
        (b"", 422, "empty"),
    ],
)
def test_bad_pictures_are_refused(client: Any, data: bytes, status: int, word: str) -> None:
    for answer in sent(client, data):
        complaint(answer, status, "picture", word)


@pytest.mark.parametrize("start", range(0, 200, 13))
def test_damaged_bytes_are_an_answer_or_a_refusal(client: Any, start: int) -> None:
    for kind in ("PNG", "JPEG", "WEBP"):
        data = bytearray(encoded(GREY, kind))
        data[start % len(data) : start % len(data) + 6] = b"\xff\x00\xd9\xff\xff\x80"
        for answer in sent(client, bytes(data)):
            assert answer.status_code in (200, 415, 422)


def test_a_text_chunk_that_unpacks_to_much_is_refused_or_ignored(client: Any) -> None:
    bomb = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 50_000_000))
    data = encoded(GREY)
    for answer in sent(client, data[:33] + bomb + data[33:]):
        assert answer.status_code in (200, 422)


def test_too_many_bytes_are_refused(client: Any) -> None:
    data = encoded(GREY) + b"\0" * 10 * 2**20
    for answer in sent(client, data):
        said = answer.json()
        complaint(answer, 413, said["field"], "at most 10 MB")
    complaint(client.post(URL, files={"picture": b"\0" * 33 * 2**20}), 413, None, "at most 32 MB")


def test_a_body_without_a_length_is_bounded_too(client: Any) -> None:
    def pieces() -> Any:
        for _ in range(40):
            yield b" " * 2**20

    answer = client.post(URL, content=pieces(), headers={"content-type": "application/json"})
    complaint(answer, 413, None, "at most 32 MB")


def test_a_picture_of_full_size_is_taken(client: Any) -> None:
    large = encoded(Image.new("L", (8192, 4096), 128))  # exactly 32 megapixels
    assert client.post(URL, files={"picture": large}).status_code == 200
    complaint(
        client.post(URL, files={"picture": encoded(Image.new("L", (8192, 4097), 128))}), 422, "picture", "32 megapixels"
    )


def test_zeros_behind_a_picture_and_previews_in_it_are_no_harm(client: Any) -> None:
    jpeg = encoded(GREY, "JPEG")
    for data in (encoded(GREY) + b"\0\0", jpeg + jpeg):
        assert end(data) is not None
        assert client.post(URL, files={"picture": data}).status_code == 200
