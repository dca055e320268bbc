"""Any folder of pictures: one subfolder a class, or a CSV of attributes beside the pictures."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

import numpy as np
import torch

from gencaps.data.cache import memory_map
from gencaps.data.images import ImageSet, Labels, Splits
from gencaps.data.pictures import SUFFIXES, Header, read_header, read_picture, to_tensor
from gencaps.data.splits import cut
from gencaps.errors import GencapsError

PARTS = ("train", "valid", "test")
TRUTH = {"1": 1, "true": 1, "yes": 1, "0": 0, "-1": 0, "false": 0, "no": 0}


class Listing(NamedTuple):
    """The pictures of one folder and their labels, before any is opened."""

    files: list[Path]
    y: np.ndarray
    names: tuple[str, ...]
    labels: Labels


def _children(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _pictures(folder: Path) -> list[Path]:
    """Lists the pictures below a folder by their endings, in order."""
    found = (Path(base, file) for base, _, files in os.walk(folder) for file in files)
    return sorted(p for p in found if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))


def _list_classes(folder: Path, names: tuple[str, ...] | None) -> Listing:
    """Lists one subfolder a class; ``names`` are the classes of the training part, where there is one."""
    classes = [path for path in _children(folder) if path.is_dir()]
    if not classes:
        raise GencapsError(f"{folder} holds neither subfolders (one a class) nor a CSV of attributes; make one")
    if names is None and len(classes) == 1:
        raise GencapsError(f"{folder} holds one class only ({classes[0].name}); two or more are needed")
    names = names or tuple(path.name for path in classes)
    files: list[Path] = []
    y: list[int] = []
    for path in classes:
        if path.name not in names:
            raise GencapsError(f"{path} is a class that the training part does not have; add or remove it")
        inside = _pictures(path)
        if not inside:
            raise GencapsError(f"{path} holds no pictures ({', '.join(SUFFIXES)}); add some or remove the folder")
        files += inside
        y += [names.index(path.name)] * len(inside)
    return Listing(files, np.array(y, np.int64), names, "classes")


def _list_attributes(path: Path) -> Listing:
    """Lists the rows of a CSV: a file name, then 0/1, -1/1, true/false or yes/no for every attribute."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise GencapsError(f"{path} is no CSV in UTF-8: {error}") from None
    names = tuple(name.strip() for name in rows[0][1][1:]) if rows else ()
    if not names or len(rows) < 2:
        raise GencapsError(f"{path} needs a header (file, then attributes) and at least one picture")
    if "" in names or len(set(names)) < len(names):
        raise GencapsError(f"{path} names an attribute twice or not at all: {', '.join(names)}")
    files, y = [], np.empty((len(rows) - 1, len(names)), np.uint8)
    for i, (line, (file, *row)) in enumerate(rows[1:]):
        if len(row) != len(names):
            raise GencapsError(f"{path}, line {line}: {len(row)} values for {len(names)} attributes")
        for j, value in enumerate(row):
            truth = TRUTH.get(value.strip().lower())
            if truth is None:
                raise GencapsError(f"{path}, line {line}, {names[j]}: '{value}' is not 0/1, -1/1, true/false or yes/no")
            y[i, j] = truth
        files.append(path.parent / file.strip())
        if not files[-1].is_file():
            raise GencapsError(f"{path}, line {line}: {files[-1]} does not exist; correct or remove the row")
    return Listing(files, y, names, "attributes")


def _list(folder: Path, like: Listing | None = None) -> Listing:
    tables = [path for path in _children(folder) if path.suffix.lower() == ".csv"]
    if len(tables) > 1:
        raise GencapsError(f"{folder} holds {len(tables)} CSV files; keep the one with the attributes")
    listing = _list_attributes(tables[0]) if tables else _list_classes(folder, like.names if like else None)
    if like and (listing.labels, listing.names) != (like.labels, like.names):
        raise GencapsError(f"{folder} has other {like.labels} than train/: {', '.join(listing.names)}")
    return listing


def _headers(files: list[Path]) -> list[Header]:
    """Reads the headers of all pictures; those that cannot be read are named together."""

    def attempt(path: Path) -> Header | GencapsError:
        try:
            return read_header(path)
        except GencapsError as error:
            return error

    with ThreadPoolExecutor() as pool:
        results = list(pool.map(attempt, files))
    wrong = [result for result in results if isinstance(result, GencapsError)]
    if wrong:
        shown = "; ".join(str(error) for error in wrong[:3])
        raise GencapsError(shown + (f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""))
    return [result for result in results if isinstance(result, Header)]


def _notes(files: Iterable[Path], headers: Iterable[Header]) -> tuple[str, ...]:
    """Says how many pictures will be converted, how, and names the first of each kind."""
    number: Counter[str] = Counter()
    first: dict[str, Path] = {}
    for file, header in zip(files, headers, strict=True):
        for conversion in header.conversions:
            number[conversion] += 1
            first.setdefault(conversion, file)
    return tuple(f"{number[kind]} x {kind} (first: {first[kind]})" for kind in number)


def default_size(sides: list[int]) -> int:
    """Chooses the largest power of two from 32 to 128 that the median shorter side reaches."""
    return min(128, max(32, 1 << (median_low(sides).bit_length() - 1)))


def read(folder: Path, *, size: int | None = None, seed: int = 0, share: float = 0.2, progress: bool = False) -> Splits:
    """Reads a folder of pictures through the memory-mapped cache.

    ``train/``, ``valid/`` and ``test/`` are honoured where ``train/`` holds classes or a CSV; otherwise a
    stratified ``share`` of the pictures, fixed by the seed, is the test part. The valid part may be empty.
    """
    # pathlib's own raise on the home of nobody and on a link to itself
    folder = Path(os.path.realpath(os.path.expanduser(folder)))
    if not folder.is_dir():
        raise GencapsError(f"{folder} is not a folder; give one as folder:PATH")
    inner = folder / "train"
    parted = inner.is_dir() and any(p.is_dir() or p.suffix.lower() == ".csv" for p in _children(inner))
    listings = {"train": _list(inner if parted else folder)}
    if parted:
        for part in PARTS[1:]:
            if (folder / part).is_dir():
                listings[part] = _list(folder / part, listings["train"])
    files = [file for listing in listings.values() for file in listing.files]
    headers = _headers(files)
    size = size or default_size([min(header.width, header.height) for header in headers])
    channels = 1 if all(header.grey for header in headers) else 3

    def decode(i: int) -> np.ndarray:
        return to_tensor(read_picture(files[i], channels=channels), size, channels).numpy()

    shape = (len(files), channels, size, size)
    x = memory_map("folder", files, shape, decode, progress=progress)
    y = torch.from_numpy(np.concatenate([listing.y for listing in listings.values()]))
    names, labels = listings["train"].names, listings["train"].labels
    whole = ImageSet(f"folder:{folder.name}", x, y, names, labels, _notes(files, headers))
    train = whole[: len(listings["train"].files)]
    parts = {"train": train, "valid": train[:0], "test": train[:0]}
    start = 0
    for part, listing in listings.items():
        parts[part] = whole[start : start + len(listing.files)]
        start += len(listing.files)
    if "test" not in listings:
        parts["train"], parts["test"] = cut(parts["train"], share, seed)
    return Splits(**parts)
