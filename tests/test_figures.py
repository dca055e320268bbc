from __future__ import annotations

import os
import re
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gencaps.errors import GencapsError
from gencaps.figures import grid, save_gif, save_picture, strip, terminal, to_bytes

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def numbered(n: int, h: int = 2, w: int = 2) -> torch.Tensor:
    """Flat grey pictures: the i-th has the byte 10 (i + 1) everywhere."""
    return (10 * torch.arange(1, n + 1, dtype=torch.uint8)).view(n, 1, 1, 1).expand(n, 1, h, w).contiguous()


def test_to_bytes_rounds_clamps_and_moves_channels_last() -> None:
    x = torch.tensor([0.0, 0.5, 1.0, -3.0, 7.0, torch.nan]).view(1, 1, 2, 3)
    # 0.5 * 255 = 127.5, to the even neighbour 128
    assert to_bytes(x)[0, :, :, 0].tolist() == [[0, 128, 255], [0, 255, 0]]
    color = torch.tensor([1.0, 0.2, 0.0]).view(1, 3, 1, 1)
    assert to_bytes(color)[0, 0, 0].tolist() == [255, 51, 0]  # 0.2 * 255 = 51


def test_to_bytes_keeps_bytes() -> None:
    x = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert np.array_equal(to_bytes(x)[0, :, :, 0], x[0, 0].numpy())


def test_to_bytes_takes_half_precision_with_gradients() -> None:
    x = torch.full((1, 1, 1, 1), 0.5, dtype=torch.bfloat16, requires_grad=True)
    assert to_bytes(x).item() == 128


@pytest.mark.parametrize("channels", [2, 4])
def test_two_or_four_channels_are_refused(channels: int) -> None:
    with pytest.raises(GencapsError, match=f"not {channels}"):
        to_bytes(torch.zeros(1, channels, 2, 2))


def test_grid_places_pictures_in_reading_order_2_px_apart() -> None:
    # 5 pictures of 2 x 3 px, each pixel 3 x 3, in 2 columns: cells of 9 x 6, 3 rows
    page = grid(numbered(5, h=2, w=3), 2, scale=3)
    assert page.size == (2 + 2 * (9 + 2), 2 + 3 * (6 + 2))
    pixels = np.asarray(page)[..., 0]
    assert pixels[2, 2] == 10
    assert pixels[7, 10] == 10  # the last pixel of the first picture
    assert pixels[7, 11] == pixels[8, 10] == 255  # the gap
    assert pixels[2, 13] == 20
    assert pixels[10, 2] == 30
    assert pixels[18, 2] == 50
    assert (pixels[18:, 13:] == 255).all()  # nothing after the last


def test_grid_repeats_pixels_without_blurring() -> None:
    x = torch.tensor([[0, 255], [255, 0]], dtype=torch.uint8).view(1, 1, 2, 2)
    inner = np.asarray(grid(x, 1, scale=4))[2:-2, 2:-2, 0]
    assert np.array_equal(inner, np.kron([[0, 255], [255, 0]], np.ones((4, 4), dtype=int)))


@pytest.mark.parametrize(("side", "shown"), [(8, 64), (12, 60), (28, 56), (32, 64), (64, 64), (128, 128)])
def test_small_pictures_are_enlarged_to_about_60_px_and_large_ones_left_alone(side: int, shown: int) -> None:
    assert grid(torch.zeros(1, 3, side, side), 1).size == (shown + 4, shown + 4)


def test_labels_and_captions_leave_the_pictures_as_they_are() -> None:
    plain = np.asarray(grid(numbered(4, 8, 8), 2))
    page = grid(numbered(4, 8, 8), 2, row_labels=["zero", "one"], captions=["a", "b", "c", "d\n0.97"])
    left, below = page.width - plain.shape[1], (page.height - plain.shape[0]) // 2
    assert left > 20
    assert below > 20  # two lines of text
    pixels = np.asarray(page)
    for row in range(2):
        there = pixels[2 + row * (66 + below) :, left:][:64]
        assert np.array_equal(there, plain[2 + row * 66 :][:64])
        assert (pixels[2 + row * (66 + below) :, :left][:64] < 128).any()  # a label was drawn
        assert (pixels[66 + row * (66 + below) :, left:][:below] < 128).any()  # a caption was drawn


def test_a_long_caption_is_cut_to_its_picture() -> None:
    one, other = "a caption that is far too long", "."
    page = np.asarray(grid(numbered(2, 8, 8), 2, captions=[one, other]))
    alone = np.asarray(grid(numbered(2, 8, 8), 2, captions=["", other]))
    assert np.array_equal(page[:, 68:], alone[:, 68:])


def test_grid_refuses_what_does_not_fit() -> None:
    with pytest.raises(GencapsError, match="columns must be 1 or more, not 0"):
        grid(numbered(2), 0)
    with pytest.raises(GencapsError, match="no picture"):
        grid(numbered(2)[:0], 1)
    with pytest.raises(GencapsError, match="scale must be 1 or more, not 0"):
        grid(numbered(2), 1, scale=0)
    with pytest.raises(ValueError, match="2 rows need 2 labels"):
        grid(numbered(2), 1, row_labels=["a"])


def test_strip_is_one_row() -> None:
    assert strip(numbered(5), scale=1).size == (2 + 5 * 4, 2 + 4)


def test_a_saved_picture_reads_back_and_leaves_nothing_else(tmp_path: Path) -> None:
    page = grid(numbered(3), 3)
    path = save_picture(page, tmp_path / "grid.PNG")
    with Image.open(path) as read:
        assert np.array_equal(np.asarray(read), np.asarray(page))
    assert os.listdir(tmp_path) == ["grid.PNG"]


def test_a_gif_takes_the_seconds_asked_for(tmp_path: Path) -> None:
    path = save_gif(numbered(5, 8, 8), tmp_path / "walk.gif", seconds=1.0)
    with Image.open(path) as read:
        assert getattr(read, "n_frames", 1) == 5
        assert read.info["duration"] == 200  # ms: 1 s over 5 frames
        assert read.info["loop"] == 0  # for ever
        assert read.size == (64, 64)
        read.seek(4)
        assert read.convert("L").getpixel((30, 30)) == 50


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/a.png", "missing does not exist; make the folder first"),
        ("file/a.png", "file is not a folder"),
        ("folder.png", "it is a folder; name a file in it"),
        ("a.pgn", r"'.pgn' is not a picture format \(did you mean '.png'\?\)"),
        ("a", "the name has no ending"),
    ],
)
def test_a_bad_place_is_refused_by_name(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(GencapsError, match=words) as caught:
        save_picture(grid(numbered(1), 1), tmp_path / name)
    assert name in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.png"]


def test_an_animation_must_be_a_gif(tmp_path: Path) -> None:
    with pytest.raises(GencapsError, match=r"'.png' is not .* \(known: .gif\)"):
        save_gif(numbered(2), tmp_path / "a.png")
    with pytest.raises(GencapsError, match=r"seconds must be above 0, not 0\.0"):
        save_gif(numbered(2), tmp_path / "a.gif", seconds=0.0)


@pytest.fixture
def plain_user(tmp_path: Path) -> Iterator[None]:
    """Takes root's powers away, because root may write anywhere."""
    was = os.geteuid()
    if was == 0:
        save_picture(grid(numbered(1), 1), os.path.join(tempfile.mkdtemp(), "a.png"))  # Pillow loads what it needs
        try:
            os.seteuid(65534)
        except OSError:
            pytest.skip("root cannot become another user here")
    yield
    os.seteuid(was)


def test_a_folder_that_may_not_be_written_or_entered_is_refused(plain_user: None) -> None:
    page = grid(numbered(1), 1)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    with pytest.raises(GencapsError, match=r"a\.png: Permission denied; choose a folder that you may write to"):
        save_picture(page, folder / "a.png")
    folder.chmod(0o000)
    with pytest.raises(GencapsError, match=r"inner: Permission denied; name another folder"):
        save_picture(page, folder / "inner" / "a.png")
    folder.rmdir()


def test_a_full_disk_keeps_the_old_picture_whole(tmp_path: Path) -> None:
    path = save_picture(grid(numbered(1), 1), tmp_path / "a.png")
    before = path.read_bytes()
    noise = torch.randint(256, (100, 3, 32, 32), dtype=torch.uint8)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(GencapsError, match=r"a\.png: .*; free some space"):
            save_picture(grid(noise, 10), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.png"]


@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize(
    ("side", "n", "columns", "width", "lines", "wide"),
    [
        (8, 10, 10, 80, 4, 80),  # 8 px each fit only side by side, with no gap: 8 rows of pixels, 4 lines
        (8, 20, 10, 100, 9, 89),  # 10 * 8 + 9 gaps; 4 lines, a blank one, 4 lines
        (32, 10, 10, 80, 4, 79),  # (80 - 9) // 10 = 7 px each: 7 rows of pixels, 4 lines
        (28, 3, 2, 30, 15, 29),  # (30 - 1) // 2 = 14 px each: 7 lines, a blank one, 7 lines
        (8, 10, 10, 9, 14, 9),  # only (9 + 1) // 5 = 2 in a row, 4 px each: 5 rows of 2 lines, 4 blank ones
    ],
)
def test_terminal_pictures_fit_the_width(
    side: int, n: int, columns: int, width: int, lines: int, wide: int, color: bool
) -> None:
    drawn = ANSI.sub("", terminal(torch.rand(n, 3, side, side), columns, width=width, color=color)).split("\n")
    assert len(drawn) == lines
    assert {len(line) for line in drawn} == {wide}
    assert wide <= width


def test_terminal_puts_the_upper_pixel_in_front_and_the_lower_behind() -> None:
    x = torch.tensor([[[[255], [0]], [[0], [128]], [[7], [9]]]], dtype=torch.uint8)
    assert terminal(x, 1) == "\x1b[38;2;255;0;7;48;2;0;128;9m▀\x1b[0m"


def test_terminal_repeats_no_colour_and_ends_an_odd_picture_in_half_a_line() -> None:
    drawn = terminal(torch.zeros(1, 1, 3, 3), 1).split("\n")
    assert drawn == ["\x1b[38;2;0;0;0;48;2;0;0;0m▀▀▀\x1b[0m", "\x1b[0;38;2;0;0;0m▀▀▀\x1b[0m"]


def test_plain_terminal_goes_from_dark_to_light() -> None:
    x = torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]).view(1, 1, 2, 3)
    # halves: 0, 0.5 (place 4.5 of 9, rounded to the even 4), 1
    assert terminal(x, 1, color=False) == " =@"


def test_terminal_shrinks_by_averaging() -> None:
    x = torch.zeros(1, 1, 8, 8)
    x[..., ::2] = 1.0  # stripes one pixel wide: halved, every pixel is 0.5
    assert terminal(x, 1, width=4, color=False) == "====\n===="
