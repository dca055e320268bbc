"""Every fault in a user's files that the data room must tell in one line, with the file and a remedy."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gencaps import data
from gencaps.data.images import Splits
from gencaps.errors import GencapsError
from tests.data.helpers import encoded, idx, picture, png, rng, write_celeba, write_classes, write_mnist


def load_mnist(root: Path) -> Splits:
    return data.load("mnist", root=root)


def load_folder(root: Path) -> Splits:
    return data.load(f"folder:{root / 'pets'}")


def load_celeba(root: Path) -> Splits:
    return data.load("celeba", root=root, size=8)


def edit_mnist(file: str, edit: Callable[[bytes], bytes], packed: bool = True) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        write_mnist(root / "mnist", packed=packed)
        path = root / "mnist" / (f"{file}.gz" if packed else file)
        path.write_bytes(edit(path.read_bytes()))

    return make


def regzip(edit: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda packed: gzip.compress(edit(gzip.decompress(packed)))


def corrupt_member(root: Path) -> None:
    write_celeba(root / "celeba", zips=2)
    path = root / "celeba" / "img_1.zip"
    content = bytearray(path.read_bytes())
    at = content.index(b"000004.jpg") + 200  # inside the stored bytes of that member
    content[at : at + 50] = bytes(50)
    path.write_bytes(bytes(content))


def truncated_zip(root: Path) -> None:
    write_celeba(root / "celeba", zips=2)
    path = root / "celeba" / "img_0.zip"
    path.write_bytes(path.read_bytes()[:-50])


def pets(**change: bytes) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        write_classes(root / "pets", {"cat": 3, "dog": 3})
        for name, content in change.items():
            (root / "pets" / "dog" / name.replace("_", ".")).write_bytes(content)

    return make


def one_class(root: Path) -> None:
    write_classes(root / "pets", {"cat": 3})


def empty_class(root: Path) -> None:
    write_classes(root / "pets", {"cat": 3, "dog": 3, "elk": 0})


def no_class(root: Path) -> None:
    (root / "pets").mkdir()
    picture().save(root / "pets" / "a.png")


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
CASES = {
    "truncated IDX": (
        edit_mnist(IMAGES, lambda d: d[:-7], packed=False),
        load_mnist,
        (IMAGES, "promises", "data get mnist"),
    ),
    "truncated gzip": (
        edit_mnist(IMAGES, lambda d: d[:-9]),
        load_mnist,
        (IMAGES, "cut short", "data get mnist"),
    ),
    "IDX too long": (edit_mnist(LABELS, lambda d: d + b"x", packed=False), load_mnist, (LABELS, "promises")),
    "IDX header only": (edit_mnist(IMAGES, lambda d: d[:9], packed=False), load_mnist, (IMAGES, "header")),
    "empty IDX": (edit_mnist(IMAGES, lambda d: b"", packed=False), load_mnist, (IMAGES, "0x0803")),
    "wrong magic": (
        edit_mnist(IMAGES, regzip(lambda d: b"\0\0\x0d\3" + d[4:])),
        load_mnist,
        (IMAGES, "0x0d03", "0x0803", "data get"),
    ),
    "labels for pictures": (
        edit_mnist(IMAGES, lambda d: gzip.compress(idx(rng().integers(0, 9, 20)))),
        load_mnist,
        (IMAGES, "0x0801"),
    ),
    "counts differ": (
        edit_mnist(LABELS, lambda d: gzip.compress(idx(rng().integers(0, 9, 19)))),
        load_mnist,
        (IMAGES, "20 pictures", LABELS, "19 labels"),
    ),
    "label above 9": (
        edit_mnist(LABELS, regzip(lambda d: d[:-1] + b"\x0b")),
        load_mnist,
        (LABELS, "label 11"),
    ),
    "no pictures at all": (
        edit_mnist(IMAGES, lambda d: b"\0\0\x08\x03" + struct.pack(">III", 20, 0, 0), packed=False),
        load_mnist,
        (IMAGES, "no pixels"),
    ),
    "corrupt zip member": (
        corrupt_member,
        load_celeba,
        ("img_1.zip", "000004.jpg", "damaged", "get it again"),
    ),
    "truncated zip": (truncated_zip, load_celeba, ("img_0.zip", "get it again")),
    "one class": (one_class, load_folder, ("pets", "one class only (cat)", "two or more")),
    "an empty class": (empty_class, load_folder, ("elk", "no pictures", "remove the folder")),
    "no classes": (no_class, load_folder, ("pets", "neither subfolders")),
    "text named .png": (
        pets(bad_png=b"dear diary\n"),
        load_folder,
        ("bad.png", "is text", "replace or remove"),
    ),
    "0 x 0": (pets(bad_png=png(0, 0, 8, 2, b"")), load_folder, ("bad.png", "0 x 0", "replace or remove")),
    "empty file": (pets(bad_png=b""), load_folder, ("bad.png", "is empty")),
    "truncated picture": (
        pets(bad_jpg=encoded(picture(size=(300, 300)))[:2000]),
        load_folder,
        ("bad.jpg", "damaged"),
    ),
    "several": (pets(b_png=b"text", c_png=b"", a_png=b"text"), load_folder, ("a.png", "b.png", "c.png")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_told_in_one_line_and_nothing_is_half_written(tmp_path: Path, cache: Path, case: str) -> None:
    make, load, words = CASES[case]
    make(tmp_path)
    with pytest.raises(GencapsError) as error:
        load(tmp_path)
    line = str(error.value)
    assert "\n" not in line
    for word in words:
        assert word in line
    assert not list(cache.rglob("*.*"))


CONVERTED = {
    "CMYK": (pets(odd_jpg=encoded(picture(mode="CMYK"))), "CMYK converted to RGB"),
    "16-bit": (
        pets(odd_png=png(40, 40, 16, 0, (b"\0" + struct.pack(">40H", *range(0, 60000, 1500))) * 40)),
        "16 bits a channel scaled to 8",
    ),
    "palette": (pets(odd_png=encoded(picture(mode="P"), "PNG")), "palette converted to RGB"),
    "alpha": (pets(odd_png=encoded(picture(mode="RGBA"), "PNG")), "transparency laid over white"),
}


@pytest.mark.parametrize("case", CONVERTED)
def test_an_odd_picture_is_converted_and_said_so(tmp_path: Path, case: str) -> None:
    make, words = CONVERTED[case]
    make(tmp_path)
    splits = load_folder(tmp_path)
    assert sum(map(len, splits)) == 7
    assert splits.train.x.shape[1] == 3
    (note,) = splits.train.notes
    assert note.startswith(f"1 x {words} (first: ")
    assert "odd" in note


def test_an_animated_picture_gives_its_first_frame_and_says_so(tmp_path: Path) -> None:
    write_classes(tmp_path / "pets", {"cat": 3, "dog": 3})
    picture().save(tmp_path / "pets" / "dog" / "odd.gif", save_all=True, append_images=[picture(1)])
    notes = load_folder(tmp_path).train.notes
    assert any("the first taken" in note and "odd.gif" in note for note in notes)


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes(tmp_path / "pets", {"cat": 3, "dog": 3})
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GENCAPS_CACHE", str(tmp_path / "file"))
    with pytest.raises(GencapsError, match=r"cannot write the cache .*file/pictures: .*set GENCAPS_CACHE"):
        load_folder(tmp_path)
