"""CelebA (Liu et al., 2015): aligned faces with 40 attributes, as a folder of pictures or as zips."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gencaps.data.cache import memory_map
from gencaps.data.images import ImageSet, Splits
from gencaps.data.pictures import read_picture, to_tensor
from gencaps.errors import GencapsError

ATTRIBUTES_FILE, PARTITION_FILE, FOLDER = (
    "list_attr_celeba.txt",
    "list_eval_partition.txt",
    "img_align_celeba",
)
SIZE = 64
BY_HAND = (
    "CelebA is for non-commercial research and fetched by hand: accept its terms at "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html, then "
    f"put {FOLDER}.zip (or the folder), {ATTRIBUTES_FILE} and {PARTITION_FILE} into $GENCAPS_DATA/celeba"
)


def is_here(folder: Path) -> bool:
    """Says whether both lists and some pictures lie in the folder."""
    lists = all((folder / name).is_file() for name in (ATTRIBUTES_FILE, PARTITION_FILE))
    return lists and ((folder / FOLDER).is_dir() or any(folder.glob("*.zip")))


def _lines(path: Path) -> list[list[str]]:
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise GencapsError(f"{path} cannot be read: {error}; get CelebA's own list again") from None
    return [row for row in rows if row]


def read_attributes(path: Path) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """Reads the attribute list: a count, the names, then a file and -1 or 1 for each; -1 becomes 0."""
    rows = _lines(path)
    if len(rows) < 3 or not rows[0][0].isdigit():
        raise GencapsError(f"{path} does not begin with a count and attribute names; get CelebA's own list")
    names = tuple(rows[1])
    values: dict[str, np.ndarray] = {}
    for number, (file, *row) in enumerate(rows[2:], 3):
        if len(row) != len(names) or not set(row) <= {"-1", "0", "1"}:
            raise GencapsError(f"{path}, line {number}: not a file name and {len(names)} values of -1 or 1")
        values[file] = np.array([value == "1" for value in row], np.uint8)
    if len(values) != int(rows[0][0]):
        raise GencapsError(f"{path} promises {rows[0][0]} pictures but lists {len(values)}; get it again")
    return names, values


def read_partition(path: Path) -> dict[str, int]:
    """Reads the official split: a file name and 0 (train), 1 (valid) or 2 (test) a line."""
    rows = _lines(path)
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or row[1] not in ("0", "1", "2"):
            raise GencapsError(f"{path}, line {number}: not a file name and 0, 1 or 2; get CelebA's own list")
    return {file: int(part) for file, part in rows}


def _find_pictures(folder: Path, names: list[str]) -> tuple[list[Path], Callable[[int], io.BytesIO | Path]]:
    """Finds every named picture in the folder of pictures or in the zips beside the lists.

    Returns the source files, and how to open picture i.
    """
    if (folder / FOLDER).is_dir():
        files = [folder / FOLDER / name for name in names]
        missing = [file.name for file in files if not file.is_file()]
        _refuse_missing(folder, missing)
        return files, lambda i: files[i]
    members: dict[str, tuple[zipfile.ZipFile, str]] = {}
    zips = sorted(folder.glob("*.zip"))
    for path in zips:
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError) as error:
            raise GencapsError(f"{path} is no zip or is cut short ({error}); get it again") from None
        for member in archive.namelist():
            members[member.rsplit("/", 1)[-1]] = (archive, member)
    _refuse_missing(folder, [name for name in names if name not in members])
    found = [members[name] for name in names]

    def open_member(i: int) -> io.BytesIO:
        archive, member = found[i]
        try:
            file = io.BytesIO(archive.read(member))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise GencapsError(f"{archive.filename}: {member} is damaged ({error}); get it again") from None
        file.name = f"{archive.filename}: {member}"
        return file

    return zips, open_member


def _refuse_missing(folder: Path, missing: list[str]) -> None:
    if missing:
        raise GencapsError(
            f"{folder} lacks {len(missing)} of the pictures in {PARTITION_FILE} (first: {missing[0]}); "
            f"put them into {FOLDER}/ or a zip beside the lists"
        )


def read(folder: Path, *, size: int = SIZE, progress: bool = False) -> Splits:
    """Reads the three official parts through the memory-mapped cache.

    Each picture is cropped to the centred square of its shorter side (178 x 178 on an original), then
    resized. The 40 attributes are 0 or 1.
    """
    names, values = read_attributes(folder / ATTRIBUTES_FILE)
    partition = read_partition(folder / PARTITION_FILE)
    unknown = [file for file in partition if file not in values]
    if unknown:
        raise GencapsError(f"{folder / PARTITION_FILE} lists {unknown[0]}, {ATTRIBUTES_FILE} does not; get both again")
    # part after part in the file, so that each part is a slice of the map
    order = sorted(partition, key=lambda file: (partition[file], file))
    sources, opener = _find_pictures(folder, order)

    def decode(i: int) -> np.ndarray:
        return to_tensor(read_picture(opener(i), channels=3), size, 3).numpy()

    x = memory_map("celeba", sources, (len(order), 3, size, size), decode, detail=order, progress=progress)
    y = torch.from_numpy(np.stack([values[file] for file in order]))
    whole = ImageSet("celeba", x, y, names, "attributes")
    train, valid = (sum(part == k for part in partition.values()) for k in (0, 1))
    return Splits(whole[:train], whole[train : train + valid], whole[train + valid :])
