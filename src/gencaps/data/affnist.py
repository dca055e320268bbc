"""affNIST (Tieleman, 2013): MNIST digits under small affine maps on a 40 x 40 canvas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gencaps.data.images import ImageSet, Splits
from gencaps.data.splits import generator_of
from gencaps.data.transforms import affine, shifted_window
from gencaps.errors import GencapsError

SIZE = 40
DEGREES, SHEAR, SCALE = 20.0, 0.2, (0.8, 1.2)
WORKING = 52
"""Side of the working canvas: the whole 28 x 28 picture fits it under the largest map."""
REGENERATED = "affNIST (regenerated)"


def place(x: UInt8[Tensor, "n 1 height width"], u: Float[Tensor, "n 6"]) -> UInt8[Tensor, "n 1 40 40"]:
    """Maps each digit affinely and puts it anywhere on the canvas where it is still whole.

    Args:
        x: digits, bright on black.
        u: uniform in [0, 1): turn (within 20 degrees), shear (0.2), scale in x and in y (0.8 to 1.2), and the
            place among all that keep every bright pixel on the canvas, (down, right).
    """
    signed = u.float() * 2 - 1
    low, high = SCALE
    drawn = affine(
        x,
        degrees=signed[:, 0] * DEGREES,
        shear=signed[:, 1] * SHEAR,
        scale=low + (high - low) * u[:, 2:4].float(),
        out=(WORKING, WORKING),
    )
    ink = drawn[:, 0] > 0
    first, room = [], []
    for other in (2, 1):  # rows have ink where some column has, and the reverse
        line = ink.any(other).to(torch.int32)
        start = line.argmax(1)
        length = WORKING - line.flip(1).argmax(1) - start
        first.append(start)
        room.append((SIZE - length).clamp(min=0))
    down, right = ((u[:, 4 + i].float() * (room[i] + 1)).floor().long() for i in (0, 1))
    return shifted_window(drawn, first[0] - down, first[1] - right, SIZE)


def regenerate(set: ImageSet, seed: int) -> ImageSet:
    """Makes an affNIST-like set of MNIST digits, one for each digit, fixed by the seed."""
    u = torch.rand(len(set), 6, generator=generator_of(seed))
    note = f"regenerated from MNIST with seed {seed}; not the original files"
    return ImageSet(REGENERATED, _placed(set, u), set.y, set.names, notes=(note,))


def placed(set: ImageSet, seed: int) -> ImageSet:
    """Puts MNIST digits anywhere on the canvas where they are whole, moved and nothing else, fixed by the seed."""
    u = torch.full((len(set), 6), 0.5)  # no turn, no shear, scale 1
    u[:, 4:] = torch.rand(len(set), 2, generator=generator_of(seed))
    note = f"MNIST placed at random on {SIZE} px with seed {seed}; the test part is affNIST"
    return ImageSet("mnist_to_affnist", _placed(set, u), set.y, set.names, notes=(note,))


def _placed(set: ImageSet, u: Float[Tensor, "n 6"], chunk: int = 4096) -> UInt8[Tensor, "n 1 40 40"]:
    x = torch.empty(len(set), 1, SIZE, SIZE, dtype=torch.uint8)
    for start in range(0, len(set), chunk):
        here = slice(start, start + chunk)
        x[here] = place(set.x[here], u[here])
    return x


def _batches(folder: Path, stem: str) -> list[Path]:
    """Finds the original files of one part: ``STEM.mat`` or ``STEM_batches/*.mat``."""
    for base in (folder, folder / "transformed"):
        whole = base / f"{stem}.mat"
        found = [whole] if whole.is_file() else list((base / f"{stem}_batches").glob("*.mat"))
        if found:
            # 1.mat, 2.mat, 10.mat
            return sorted(found, key=lambda path: (len(path.stem), path.stem))
    return []


def is_here(folder: Path) -> bool:
    """Says whether the original training and test files lie in the folder."""
    return all(_batches(folder, stem) for stem in ("training_and_validation", "test"))


def read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads one original file: pixels (n, 40, 40) and labels (n,).

    Its struct ``affNISTdata`` holds ``image`` (1600, n), each column a picture row by row, and ``label_int``.
    """
    from scipy.io import loadmat

    try:
        data = loadmat(path, squeeze_me=True, struct_as_record=True)["affNISTdata"]
        pixels = np.asarray(data["image"].item(), np.uint8)
        labels = np.atleast_1d(np.asarray(data["label_int"].item(), np.int64))
        return np.ascontiguousarray(pixels.reshape(SIZE * SIZE, -1).T).reshape(-1, SIZE, SIZE), labels
    except Exception as error:  # scipy raises what it likes on damaged files
        raise GencapsError(f"{path} is no affNIST file ({error!s:.100}); get it again or remove it") from None


def _read_part(folder: Path, stem: str) -> ImageSet:
    pixels, labels = zip(*(read_mat(path) for path in _batches(folder, stem)), strict=True)
    x, y = torch.from_numpy(np.concatenate(pixels))[:, None], torch.from_numpy(np.concatenate(labels))
    if len(x) != len(y) or not 0 <= int(y.min()) <= int(y.max()) <= 9:
        raise GencapsError(f"{folder}: {stem} has wrong labels, or {len(x)} pictures to {len(y)} labels; get it again")
    return ImageSet("affNIST (original)", x, y, tuple("0123456789"))


def read(folder: Path) -> Splits:
    """Reads the original files; the valid part is empty."""
    train = _read_part(folder, "training_and_validation")
    return Splits(train, train[:0], _read_part(folder, "test"))
