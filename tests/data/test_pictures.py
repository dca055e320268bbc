from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gencaps.data import pictures
from gencaps.data.pictures import read_header, read_picture, to_tensor
from gencaps.errors import GencapsError
from tests.data.helpers import encoded, picture, png


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "GIF", "TIFF", "JPEG"])
def test_every_kind_is_read_from_paths_and_files(tmp_path: Path, kind: str) -> None:
    image = Image.new("RGB", (9, 5), (200, 40, 90))
    path = tmp_path / f"x.{kind.lower()}"
    path.write_bytes(encoded(image, kind))
    for source in (path, str(path), io.BytesIO(path.read_bytes())):
        found = read_picture(source)
        assert found.size == (9, 5)
        assert np.abs(np.asarray(found).astype(int) - [200, 40, 90]).max() <= 4  # JPEG and WebP round


def test_grey_stays_grey_unless_colour_is_asked_for() -> None:
    data = encoded(picture(mode="L"), "PNG")
    assert read_picture(io.BytesIO(data)).mode == "L"
    assert read_picture(io.BytesIO(data), channels=3).mode == "RGB"


def test_sixteen_bits_are_scaled_so_that_white_stays_white(tmp_path: Path) -> None:
    rows = b"".join(b"\0" + struct.pack(">4H", 0, 257, 32896, 65535) for _ in range(2))
    path = tmp_path / "deep.png"
    path.write_bytes(png(4, 2, 16, 0, rows))
    assert np.asarray(read_picture(path)).tolist() == [[0, 1, 128, 255]] * 2  # v / 257
    assert read_header(path).conversions == ("16 bits a channel scaled to 8",)
    assert read_header(path).grey


def test_deep_colour_is_noted_too(tmp_path: Path) -> None:
    rows = b"\0" + struct.pack(">3H", 65535, 0, 257)
    path = tmp_path / "deep.png"
    path.write_bytes(png(1, 1, 16, 2, rows))
    assert np.asarray(read_picture(path)).tolist() == [[[255, 0, 1]]]
    assert read_header(path).conversions == ("16 bits a channel scaled to 8",)


def test_transparency_is_laid_over_white() -> None:
    image = Image.new("RGBA", (1, 1), (0, 0, 255, 51))  # 51 / 255 = 0.2 of blue, 0.8 of white
    assert np.asarray(read_picture(io.BytesIO(encoded(image, "PNG")))).tolist() == [[[204, 204, 255]]]


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    path = tmp_path / "print.jpg"
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(path, quality=100)  # magenta and yellow ink: red
    red, green, blue = np.asarray(read_picture(path))[4, 4]
    assert red > 240
    assert max(green, blue) < 15
    assert read_header(path).conversions == ("CMYK converted to RGB",)


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "WEBP", "PNG"])
def test_of_many_frames_the_first_is_taken(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"moving.{kind.lower()}"
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    frames[0].save(path, kind, save_all=True, append_images=frames[1:], **options)
    assert np.asarray(read_picture(path, channels=3))[0, 0].tolist() == [255, 0, 0]
    assert "animated or many pages: the first taken" in read_header(path).conversions


def test_the_cameras_rotation_is_applied(tmp_path: Path) -> None:
    image = Image.new("L", (4, 2))
    image.putpixel((0, 0), 255)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 90 degrees clockwise to see it upright
    path = tmp_path / "photo.png"
    image.save(path, exif=exif)
    found = np.asarray(read_picture(path))
    assert found.shape == (4, 2)
    assert found[0, 1] == 255


def test_too_many_pixels_are_refused_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PIXELS", 100)
    path = tmp_path / "large.png"
    path.write_bytes(png(11, 10, 8, 0, b""))  # its pixels are missing: decoding it would say 'damaged'
    with pytest.raises(GencapsError, match=r"large.png is 11 x 10 pixels, more than"):
        read_picture(path)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.png", b"hello, I am text\n", "is text"),
        ("a.png", b"", "is empty"),
        ("a.png", png(0, 0, 8, 0, b""), "is 0 x 0 pixels"),
        ("a.png", png(0, 5, 8, 0, b""), "is 0 x 0 pixels"),
        ("a.gif", b"GIF89a" + bytes(7), "is 0 x 0 pixels"),
        ("a.png", encoded(picture(), "PNG")[:-200], "is damaged"),
        ("a.jpg", encoded(picture(size=(200, 200)))[:900], "is damaged"),
        ("a.jpg", b"\xff\xd8\xff" + bytes(range(100)), "no picture of a known kind"),
        ("a.tif", encoded(Image.new("F", (4, 4)), "TIFF"), "floating-point"),
        ("a.tif", encoded(Image.new("I", (4, 4)), "TIFF"), "32-bit"),
        ("a.png", encoded(picture(), "PPM"), "no picture of a known kind"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(GencapsError) as error:
        read_picture(path)
    assert name in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GencapsError, match=r"nowhere.png cannot be read: No such file"):
        read_picture(tmp_path / "nowhere.png")


def test_cropping_takes_the_centred_square() -> None:
    wide = Image.new("RGB", (30, 10), "black")
    wide.paste("red", (10, 0, 20, 10))  # the centred square, exactly
    x = to_tensor(wide, 5, 3)
    assert x.shape == (3, 5, 5)
    assert torch.equal(x, torch.tensor([255, 0, 0], dtype=torch.uint8)[:, None, None].expand(3, 5, 5))


def test_shrinking_averages_rather_than_picks() -> None:
    checks = Image.fromarray((np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8))
    x = to_tensor(checks, 8, 1).float()
    assert (x - 127.5).abs().max() < 4  # picking pixels would give 0 or 255


def test_a_row_of_168_bytes_is_not_16_bits(tmp_path: Path) -> None:
    """A 24-bit BMP of 55 pixels a row has 168 bytes a row, a number that begins with 16."""
    Image.new("RGB", (55, 40), "red").save(tmp_path / "plain.bmp")
    assert read_header(tmp_path / "plain.bmp").conversions == ()
