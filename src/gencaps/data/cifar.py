"""CIFAR-10 (Krizhevsky, 2009) in its binary and its Python version."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gencaps.data.images import ImageSet, Splits
from gencaps.errors import GencapsError

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST = ("test_batch",)
RECORDS = 10_000
"""Pictures in each of the six official files."""
REMEDY = "delete it and run 'gencaps data get cifar10'"
PIXELS = 3 * 32 * 32


def batch_files(folder: Path) -> dict[str, Path] | None:
    """Finds the six files, binary or Python, in the folder or in the subfolder their archive makes."""
    for inner, suffix in (("cifar-10-batches-bin", ".bin"), ("cifar-10-batches-py", "")):
        for base in (folder / inner, folder):
            files = {stem: base / f"{stem}{suffix}" for stem in TRAIN + TEST}
            if all(path.is_file() for path in files.values()):
                return files
    return None


def is_here(folder: Path) -> bool:
    """Says whether all six files of either version lie in the folder."""
    return batch_files(folder) is not None


class _Array:
    """Takes the place of a numpy array while unpickling: keeps shape and bytes, runs nothing of numpy's."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, raw = state
        if not isinstance(kind, _Kind) or kind.code not in ("u1", "|u1", b"u1", b"|u1") or fortran:
            raise pickle.UnpicklingError("an array that is not of plain bytes")
        self.value = np.frombuffer(bytearray(raw), np.uint8).reshape(shape)


class _Kind:
    """Takes the place of a numpy dtype: remembers its code."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        pass


def _latin1(text: str, encoding: str) -> bytes:
    # Python 3 writes bytes so under protocol 2
    return text.encode("latin-1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _latin1,
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
    ("numpy._core.multiarray", "_reconstruct"): lambda *_: _Array(),
}


class _OnlyArrays(pickle.Unpickler):
    """Unpickles byte arrays, strings, numbers and containers; anything else is refused by name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which CIFAR-10 never holds")
        return _STAND_INS[module, name]


def _read_python(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        content = _OnlyArrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        plain = {k.decode() if isinstance(k, bytes) else k: v for k, v in content.items()}
        pixels, labels = plain["data"].value, np.asarray(plain["labels"], np.uint8)
    except Exception as error:  # a crafted or damaged pickle can fail in any way; none of them may pass
        raise GencapsError(f"{path} is not a CIFAR-10 batch: {error!s:.120}; {REMEDY}") from None
    if pixels.ndim != 2 or pixels.shape[1] != PIXELS or len(pixels) != len(labels):
        raise GencapsError(
            f"{path} holds pixels of shape {pixels.shape} and {len(labels)} labels, not (n, {PIXELS}) and n; {REMEDY}"
        )
    return pixels, labels


def _read_binary(path: Path) -> tuple[np.ndarray, np.ndarray]:
    # a record is one byte of label, then the red, green and blue planes
    data = np.fromfile(path, np.uint8)
    if data.size % (1 + PIXELS) or not data.size:
        raise GencapsError(f"{path} holds {data.size} bytes, no multiple of {1 + PIXELS}; {REMEDY}")
    records = data.reshape(-1, 1 + PIXELS)
    return records[:, 1:], records[:, 0]


def _part(files: dict[str, Path], stems: tuple[str, ...], records: int) -> ImageSet:
    x = torch.empty((len(stems) * records, 3, 32, 32), dtype=torch.uint8)
    y = torch.empty(len(stems) * records, dtype=torch.int64)
    for i, stem in enumerate(stems):
        path = files[stem]
        pixels, labels = _read_binary(path) if path.suffix == ".bin" else _read_python(path)
        if len(labels) != records:
            raise GencapsError(f"{path} holds {len(labels)} pictures instead of {records}; {REMEDY}")
        if labels.max() >= len(NAMES):
            raise GencapsError(f"{path} holds label {labels.max()}, above 9; {REMEDY}")
        here = slice(i * records, (i + 1) * records)
        x[here] = torch.from_numpy(np.ascontiguousarray(pixels)).view(-1, 3, 32, 32)
        y[here] = torch.from_numpy(labels.astype(np.int64))
    return ImageSet("cifar10", x, y, NAMES)


def read(folder: Path, *, records: int = RECORDS) -> Splits:
    """Reads the two official parts; the valid part is empty. ``records`` is the count in each file."""
    files = batch_files(folder)
    if files is None:
        raise GencapsError(f"{folder} does not hold the six CIFAR-10 files; run 'gencaps data get cifar10'")
    train = _part(files, TRAIN, records)
    return Splits(train, train[:0], _part(files, TEST, records))
