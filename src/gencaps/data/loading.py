"""Loads any set by its name, cut into its three parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gencaps.data import affnist, celeba, cifar, digits, folder, mnist, multimnist, synthetic
from gencaps.data.catalog import ENTRIES, faces_asked, parse
from gencaps.data.download import locate, obtain
from gencaps.data.images import ImageSet, Splits
from gencaps.data.splits import cut
from gencaps.data.transforms import resize
from gencaps.errors import GencapsError

TEST_SHARE = 0.2
"""Held out where a set has no official test part."""
TEST_SEED = 0
"""Fixes that part once and for all: a model of any seed is tested on pictures that it never saw."""


class _Request(NamedTuple):
    """What a reader may need beside its name."""

    spec: str
    size: int | None
    seed: int
    root: Path | None
    progress: bool


def _read_digits(request: _Request) -> Splits:
    train, test = cut(digits.read(), TEST_SHARE, TEST_SEED)
    return Splits(train, train[:0], test)


def _read_faces(request: _Request) -> Splits:
    # the parts are drawn from seeds of their own, so that every run is tested on the same faces
    size = min(128, max(32, request.size or ENTRIES["faces"].size))
    train, test = (
        synthetic.faces(n, size, seed, progress=request.progress) for seed, n in enumerate(faces_asked(request.spec))
    )
    return Splits(train, train[:0], test)


def _read_idx(name: str) -> Callable[[_Request], Splits]:
    return lambda request: mnist.read(obtain(name, request.root, progress=request.progress), name)


def _read_cifar(request: _Request) -> Splits:
    return cifar.read(obtain("cifar10", request.root, progress=request.progress))


def _read_celeba(request: _Request) -> Splits:
    place = obtain("celeba", request.root, progress=request.progress)
    return celeba.read(place, size=request.size or celeba.SIZE, progress=request.progress)


def _read_affnist(request: _Request) -> Splits:
    original = locate("affnist", request.root)
    if original is not None:
        return affnist.read(original)
    plain = mnist.read(obtain("mnist", request.root, progress=request.progress))
    train, test = (affnist.regenerate(part, seed) for seed, part in enumerate((plain.train, plain.test)))
    return Splits(train, train[:0], test)


def _read_mnist_to_affnist(request: _Request) -> Splits:
    plain = mnist.read(obtain("mnist", request.root, progress=request.progress))
    train = affnist.placed(plain.train, seed=0)
    return Splits(train, train[:0], _read_affnist(request).test)


def _read_multimnist(request: _Request) -> Splits:
    return multimnist.make(mnist.read(obtain("mnist", request.root, progress=request.progress)))


READERS: dict[str, Callable[[_Request], Splits]] = {
    "digits": _read_digits,
    "faces": _read_faces,
    "mnist": _read_idx("mnist"),
    "fashion_mnist": _read_idx("fashion_mnist"),
    "cifar10": _read_cifar,
    "celeba": _read_celeba,
    "affnist": _read_affnist,
    "multimnist": _read_multimnist,
    "mnist_to_affnist": _read_mnist_to_affnist,
}


def _resized(set: ImageSet, size: int | None) -> ImageSet:
    return set if size is None else replace(set, x=resize(set.x, size))


def load(
    spec: str,
    *,
    size: int | None = None,
    valid: float = 0.1,
    seed: int = 0,
    root: Path | None = None,
    progress: bool = False,
) -> Splits:
    """Loads a set as its train, valid and test parts.

    Official parts are kept. Where there is no official valid part, a share of every class is cut from train by
    the seed. Neither the pictures nor the test part ever depend on it.

    Args:
        spec: ``digits``, ``faces``, ``faces:500`` (to draw fewer), ``mnist``, ``fashion_mnist``, ``cifar10``,
            ``celeba``, ``affnist``, ``mnist_to_affnist``, ``multimnist`` or ``folder:PATH``.
        size: side in pixels to resize to; by default each set's own.
        valid: share of the training part for validation; 0 gives an empty valid part.
        seed: fixes which pictures are held out as valid.
        root: where the sets' folders lie, instead of ``$GENCAPS_DATA``.
        progress: shows bars for downloading and decoding.
    """
    name, path = parse(spec)
    if not 0 <= valid < 1:
        raise GencapsError(f"a valid share of {valid} is not possible; give a number from 0 to below 1")
    if size is not None and not 1 <= size <= 1024:
        raise GencapsError(f"pictures of {size} pixels cannot be made; give a size from 1 to 1024")
    request = _Request(spec, size, seed, root, progress)
    if path is not None:
        splits = folder.read(path, size=size, seed=TEST_SEED, share=TEST_SHARE, progress=progress)
    else:
        splits = READERS[name](request)
    if valid == 0:
        splits = splits._replace(valid=splits.train[:0])
    elif len(splits.valid) == 0:
        train, held = cut(splits.train, valid, seed, 1)  # a stream of its own beside the test part's
        splits = splits._replace(train=train, valid=held)
    return Splits(*(_resized(part, size) for part in splits))
