"""MNIST and Fashion-MNIST: the IDX files of their authors, compressed or not."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import torch

from gencaps.data.images import ImageSet, Splits
from gencaps.errors import GencapsError

STEMS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
NAMES = {
    "mnist": tuple("0123456789"),
    "fashion_mnist": (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
}
PICTURES, LABELS = 0x0803, 0x0801  # magic numbers: unsigned bytes in three dimensions, in one


def idx_file(folder: Path, stem: str) -> Path | None:
    """Finds an IDX file under any of the names it goes by: ``.gz`` or not, ``-idx3`` or ``.idx3``."""
    dotted = stem.replace("-idx", ".idx")
    for name in (f"{stem}.gz", stem, f"{dotted}.gz", dotted):
        if (folder / name).is_file():
            return folder / name
    return None


def is_here(folder: Path) -> bool:
    """Says whether all four files lie in the folder."""
    return all(idx_file(folder, stem) for stem in STEMS)


def read_idx(path: Path, magic: int, remedy: str) -> np.ndarray:
    """Reads one IDX file of unsigned bytes and checks its magic number and its length.

    The header is big-endian: the magic number (its last byte counts the dimensions), then each dimension.
    """
    try:
        data = path.read_bytes()
        # some programs unpack a download and leave the name, so the first bytes decide
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise GencapsError(f"{path} is damaged or cut short ({error}); {remedy}") from None
    except OSError as error:
        raise GencapsError(f"{path} cannot be read: {error.strerror or error}; {remedy}") from None
    dims = magic & 0xFF
    header = 4 * (1 + dims)
    found = int.from_bytes(data[:4], "big")
    if len(data) < 4 or found != magic:
        raise GencapsError(f"{path} begins with {found:#06x}, an IDX file here with {magic:#06x}; {remedy}")
    if len(data) < header:
        raise GencapsError(f"{path} ends inside its header; {remedy}")
    shape = tuple(int(d) for d in np.frombuffer(data[4:header], ">u4"))
    expected = header + int(np.prod(shape, dtype=np.int64))
    if len(data) != expected:
        raise GencapsError(f"{path} holds {len(data)} bytes where its header promises {expected}; {remedy}")
    return np.frombuffer(bytearray(data[header:]), np.uint8).reshape(shape)


def _part(folder: Path, name: str, part: str) -> ImageSet:
    remedy = f"delete it and run 'gencaps data get {name}'"
    images_stem, labels_stem = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
    images, labels = idx_file(folder, images_stem), idx_file(folder, labels_stem)
    if images is None or labels is None:
        missing = images_stem if images is None else labels_stem
        raise GencapsError(f"{folder} holds no {missing}.gz; run 'gencaps data get {name}'")
    x, y = read_idx(images, PICTURES, remedy), read_idx(labels, LABELS, remedy)
    if len(x) != len(y):
        raise GencapsError(f"{images} holds {len(x)} pictures but {labels} {len(y)} labels; {remedy}")
    if x.size == 0:
        raise GencapsError(f"{images} holds no pixels; {remedy}")
    names = NAMES[name]
    if y.max() >= len(names):
        raise GencapsError(f"{labels} holds label {y.max()}, above {len(names) - 1}; {remedy}")
    return ImageSet(name, torch.from_numpy(x)[:, None], torch.from_numpy(y.astype(np.int64)), names)


def read(folder: Path, name: str = "mnist") -> Splits:
    """Reads the two official parts; the valid part is empty."""
    train, test = _part(folder, name, "train"), _part(folder, name, "t10k")
    return Splits(train, train[:0], test)
