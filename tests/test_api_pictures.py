"""Pictures in any form become the same numbers, and what is none is refused on one line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from gencaps.api import Capsules
from gencaps.data import arrays
from gencaps.model import PictureInfo
from tests.helpers import refused

GREY, COLOUR = PictureInfo(1, 8, ("a", "b")), PictureInfo(3, 8, ("a", "b"))


def as_pictures(given: Any, info: PictureInfo) -> torch.Tensor:
    return arrays.as_pictures(given, info.size, info.channels)


def array(path: Path) -> np.ndarray:
    return np.array(Image.open(path))


def scaled(path: Path, kind: Any = np.float32) -> np.ndarray:
    return (array(path) / 255).astype(kind)


def colour(seed: int = 0, height: int = 8, width: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


FORMS: dict[str, Callable[[Path], Any]] = {
    "path": lambda a: a,
    "path as text": str,
    "PIL": Image.open,
    "PIL colour": lambda a: Image.open(a).convert("RGB"),
    "numpy (h, w)": array,
    "numpy (h, w, 1)": lambda a: array(a)[..., None],
    "numpy (h, w, 3)": lambda a: np.stack([array(a)] * 3, -1),
    "numpy (n, h, w)": lambda a: array(a)[None],
    "numpy (n, h, w, 1)": lambda a: array(a)[None, ..., None],
    "numpy (n, h, w, 3)": lambda a: np.stack([array(a)] * 3, -1)[None],
    "numpy (n, 1, h, w)": lambda a: array(a)[None, None],
    "numpy float (h, w)": scaled,
    "numpy double (h, w, 3)": lambda a: np.stack([scaled(a, np.float64)] * 3, -1),
    "numpy float (n, h, w)": lambda a: scaled(a)[None],
    "numpy float (n, h, w, 1)": lambda a: scaled(a)[None, ..., None],
    "numpy big-endian": lambda a: scaled(a, ">f4"),
    "numpy backwards": lambda a: array(a)[::-1].copy()[::-1],
    "numpy read only": lambda a: np.asarray(Image.open(a)),
    "torch (h, w)": lambda a: torch.tensor(array(a)),
    "torch (1, h, w)": lambda a: torch.tensor(array(a))[None],
    "torch (3, h, w)": lambda a: torch.tensor(array(a)).expand(3, 8, 8),
    "torch (n, 1, h, w)": lambda a: torch.tensor(array(a))[None, None],
    "torch (n, 3, h, w)": lambda a: torch.tensor(array(a)).expand(1, 3, 8, 8),
    "torch float (1, h, w)": lambda a: torch.tensor(scaled(a))[None],
    "torch double (n, 1, h, w)": lambda a: torch.tensor(scaled(a, np.float64))[None, None],
    "list": lambda a: [a],
    "tuple of a list": lambda a: ([array(a)],),
    "generator": lambda a: (one for one in [str(a)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_picture_gives_the_same_numbers(form: str, a: Path) -> None:
    expected = torch.tensor(array(a)).view(1, 1, 8, 8) / 255
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of arrays that it may not write to
        x = as_pictures(FORMS[form](a), GREY)
    assert x.dtype == torch.float32
    torch.testing.assert_close(x, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", ["path", "PIL", "numpy (h, w)", "numpy float (n, h, w)", "torch (1, h, w)"])
def test_every_form_of_a_picture_gets_the_same_answer(form: str, a: Path, model: Capsules) -> None:
    expected = model.classify(a).presence
    torch.testing.assert_close(model.classify(FORMS[form](a)).presence, expected, rtol=1e-4, atol=1e-6)


def test_many_pictures_keep_their_order_in_every_form(a: Path, b: Path) -> None:
    expected = torch.tensor(np.stack([array(a), array(b)]))[:, None] / 255
    both = np.stack([array(a), array(b)])
    for given in ([a, b], [array(a), Image.open(b)], both, both[..., None], torch.tensor(both)[:, None], [both]):
        torch.testing.assert_close(as_pictures(given, GREY), expected)


def test_axes_are_not_mixed_up() -> None:
    """One bright pixel at row 1, column 5 stays there, in each form and as red."""
    grey, red = np.zeros((8, 8), np.uint8), np.zeros((8, 8, 3), np.uint8)
    grey[1, 5], red[1, 5, 0] = 255, 255
    for given in (grey, grey[None], grey[..., None], torch.tensor(grey), torch.tensor(grey)[None]):
        assert as_pictures(given, GREY).nonzero().tolist() == [[0, 0, 1, 5]]
    for given in (red, red[None], Image.fromarray(red), torch.tensor(red).permute(2, 0, 1)):
        assert as_pictures(given, COLOUR).nonzero().tolist() == [[0, 0, 1, 5]]


def test_the_callers_array_is_left_alone() -> None:
    for given in (torch.full((1, 1, 8, 8), 0.5), np.full((8, 8), 0.5, np.float32)):
        as_pictures(given, GREY).zero_()
        assert given.min() == 0.5


def test_colour_turns_grey_as_the_eye_sees_it() -> None:
    """ITU-R BT.601: 0.299 red + 0.587 green + 0.114 blue, by Pillow for pictures and by us for arrays."""
    expected = torch.tensor(colour() @ np.array([0.299, 0.587, 0.114]) / 255).float().view(1, 1, 8, 8)
    torch.testing.assert_close(as_pictures(colour(), GREY), expected, rtol=0, atol=1e-6)
    first = torch.tensor(colour()).permute(2, 0, 1)
    torch.testing.assert_close(as_pictures(first, GREY), expected, rtol=0, atol=1e-6)
    pil = as_pictures(Image.fromarray(colour()), GREY)
    torch.testing.assert_close(pil, expected, rtol=0, atol=1 / 255)  # Pillow rounds to bytes


def test_grey_turns_colour_by_repeating_it(a: Path) -> None:
    expected = (torch.tensor(array(a)) / 255).expand(1, 3, 8, 8)
    for given in (a, Image.open(a), array(a), scaled(a), torch.tensor(array(a))[None]):
        torch.testing.assert_close(as_pictures(given, COLOUR), expected, rtol=0, atol=1e-6)


def test_arrays_are_cropped_and_scaled_like_pictures(tmp_path: Path) -> None:
    pixels = colour(1, 21, 34)
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    forms = [
        pixels,
        pixels / 255,
        torch.tensor(pixels).permute(2, 0, 1),
        Image.fromarray(pixels),
        tmp_path / "wide.png",
    ]
    for info in (GREY, COLOUR):
        first, *others = (as_pictures(form, info) for form in forms)
        assert first.shape == (1, info.channels, 8, 8)
        for other in others:  # Pillow rounds to bytes after each of its steps
            torch.testing.assert_close(other, first, rtol=0, atol=2 / 255)


def test_the_centre_is_what_is_looked_at() -> None:
    wide = np.zeros((8, 24), np.uint8)
    wide[:, :8] = wide[:, 16:] = 255
    assert as_pictures(wide, GREY).abs().max() == 0
    assert as_pictures(Image.fromarray(wide.T.copy()), GREY).abs().max() == 0


def test_a_list_may_mix_sizes_and_kinds(a: Path) -> None:
    mixed = [a, Image.new("RGB", (30, 20), "white"), np.zeros((5, 9, 3)), torch.ones(2, 1, 16, 16), [str(a)]]
    x = as_pictures(mixed, GREY)
    assert x.shape == (6, 1, 8, 8)
    assert torch.equal(x[0], x[5])
    assert x[1].min() == x[3].min() == x[4].min() == 1
    assert x[2].max() == 0


@pytest.mark.parametrize(
    "given",
    [
        np.zeros(8),
        np.zeros((2, 8, 8, 1, 1)),
        np.zeros((8, 8, 4)),  # transparency, not 8 pictures of 8 x 4
        np.zeros((8, 8, 2)),
        np.zeros((5, 8, 8, 4)),
        np.zeros((0, 8, 8)),
        np.zeros((8, 0)),
        np.array(0.5),
        torch.zeros(8, 8, 3),  # not 8 pictures of 8 x 3
        torch.zeros(5, 8, 8),
        torch.zeros(2, 8, 8, 3),
        torch.zeros(0, 1, 8, 8),
    ],
    ids=lambda given: f"{type(given).__name__}{tuple(given.shape)}",
)
def test_wrong_shapes_are_refused_by_shape(given: Any) -> None:
    refused(lambda: as_pictures(given, GREY), str(tuple(given.shape)), "give (n, ", "1 or 3 channels")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, 255.0], "from 0 to 255"),
        ([-1.0, 1.0], "from -1 to 1"),
        ([0.0, 1.01], "from 0 to 1.01"),
        ([0.5, float("nan")], "nan"),
        ([0.5, float("inf")], "inf"),
        ([0.5, float("-inf")], "-inf"),
        ([0, 200], "from 0 to 200"),
        ([-1, 1], "from -1 to 1"),
    ],
)
def test_values_out_of_range_are_refused_with_their_range(values: list[float], said: str) -> None:
    given = np.zeros((8, 8), np.array(values).dtype)
    given[0, :2] = values
    for form in (given, torch.tensor(given), [given]):
        refused(lambda form=form: as_pictures(form, GREY), said, "uint8", "floats 0 to 1")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([], "no picture"),
        ((), "no picture"),
        ([[]], "no picture"),
        ([0.5], "float"),
        ([[0, 1], [1, 0]], "int"),
        ([None], "NoneType"),
        ([b"\x89PNG"], "bytes"),
        (np.array([["a", "b"], ["c", "d"]]), "<U1"),
        (np.array([[None, 1], [2, 3]]), "object"),
        (Image.new("L", (0, 4)), "0 x 4"),
        ("no/such/picture.png", "no/such/picture.png"),
        (["no/such/picture.png"], "no/such/picture.png"),
    ],
    ids=lambda given: str(given).partition(" at 0x")[0],
)
def test_what_is_no_picture_is_refused_by_name(given: Any, word: str) -> None:
    refused(lambda: as_pictures(given, GREY), word)


def test_a_file_that_is_no_picture_is_refused_by_name(tmp_path: Path, model: Capsules) -> None:
    (tmp_path / "text.png").write_text("no picture")
    refused(lambda: model.classify(tmp_path / "text.png"), "text.png", "is text")
    refused(lambda: model.classify([tmp_path]), str(tmp_path))


def test_pil_pictures_pass_the_same_gate_as_files(tmp_path: Path) -> None:
    """Transparency is laid over white and 16 bits are scaled to 8, whoever opened the file."""
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    deep = Image.fromarray(np.full((8, 8), 30000, np.uint16))
    for name, image, value in (("clear.png", clear, 1.0), ("deep.png", deep, round(30000 / 257) / 255)):
        image.save(tmp_path / name)
        opened = Image.open(tmp_path / name)
        for given in (image, opened, tmp_path / name):
            torch.testing.assert_close(as_pictures(given, GREY), torch.full((1, 1, 8, 8), value))
    refused(lambda: as_pictures(Image.new("F", (8, 8)), GREY), "floating-point")
