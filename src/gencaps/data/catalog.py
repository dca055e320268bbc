"""Every set by its name: what it is, where it lies, and how to load it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gencaps.data import affnist, celeba, folder, multimnist, synthetic
from gencaps.data.download import locate, obtain
from gencaps.data.images import Labels
from gencaps.errors import GencapsError, nearest

FACES = (10_000, 2_000)
"""Synthetic faces in the training and in the test part."""


@dataclass(frozen=True)
class Entry:
    """What is known of a set before it is loaded."""

    title: str
    size: int
    channels: int
    classes: int
    pictures: int
    license: str
    notes: str
    labels: Labels = "classes"
    found_as: str | None = None
    """The public set whose files it needs; None where it needs none."""


class Row(NamedTuple):
    """One line of ``gencaps data list``."""

    name: str
    title: str
    size: int
    channels: int
    classes: int
    labels: Labels
    pictures: int
    where: str
    here: bool
    license: str
    notes: str


ENTRIES = {
    "digits": Entry(
        "handwritten digits of scikit-learn",
        8,
        1,
        10,
        1_797,
        "CC BY 4.0",
        "a stratified fifth is the test part",
    ),
    "faces": Entry(
        "synthetic faces",
        64,
        3,
        len(synthetic.NAMES),
        sum(FACES),
        "Apache-2.0",
        "known attributes and styles; sizes 32 to 128",
        "attributes",
    ),
    "mnist": Entry("MNIST", 28, 1, 10, 70_000, "CC BY-SA 3.0", "handwritten digits", found_as="mnist"),
    "fashion_mnist": Entry(
        "Fashion-MNIST",
        28,
        1,
        10,
        70_000,
        "MIT",
        "clothing of Zalando",
        found_as="fashion_mnist",
    ),
    "cifar10": Entry("CIFAR-10", 32, 3, 10, 60_000, "not stated", "small photographs", found_as="cifar10"),
    "celeba": Entry(
        "CelebA",
        celeba.SIZE,
        3,
        40,
        202_599,
        "research only",
        "faces with attributes; fetched by hand",
        "attributes",
        found_as="celeba",
    ),
    "affnist": Entry(
        "affNIST",
        affnist.SIZE,
        1,
        10,
        70_000,
        "CC BY-SA 3.0",
        "regenerated from MNIST unless the original .mat files are there",
        found_as="mnist",
    ),
    "multimnist": Entry(
        "MultiMNIST",
        multimnist.SIZE,
        1,
        10,
        70_000,
        "CC BY-SA 3.0",
        "two digits of MNIST on top of each other, made on the fly",
        "attributes",
        found_as="mnist",
    ),
    "mnist_to_affnist": Entry(
        "MNIST placed on 40 px, tested on affNIST",
        affnist.SIZE,
        1,
        10,
        70_000,
        "CC BY-SA 3.0",
        "training digits are moved and nothing else; the test part is affNIST's",
        found_as="mnist",
    ),
}


def parse(spec: str) -> tuple[str, Path | None]:
    """Splits ``folder:PATH`` and ``faces:N``; any other spec is a name, refused with the nearest where unknown."""
    name, _, path = spec.partition(":")
    if name == "folder" and path:
        return name, Path(path)
    if name == "faces" and path:
        faces_asked(spec)
        return name, None
    if spec not in ENTRIES and Path(spec).is_dir():
        raise GencapsError(f"there is no data set '{spec}' (did you mean 'folder:{spec}'?)")
    if spec not in ENTRIES:
        raise GencapsError(f"there is no data set '{spec}'{nearest(spec, [*ENTRIES, 'folder:PATH'])}")
    return spec, None


def faces_asked(spec: str) -> tuple[int, int]:
    """Gives the training and test faces of ``faces`` or ``faces:N``: N to train on, and a fifth of it to test."""
    asked = spec.partition(":")[2]
    if not asked:
        return FACES
    if not asked.isdecimal() or not 10 <= int(asked) <= 1_000_000:
        raise GencapsError(f"'{spec}' is not a number of faces to draw: give faces:N with N from 10 to 1000000")
    return int(asked), max(2, int(asked) // 5)


def get(name: str, *, progress: bool = False) -> Path | None:
    """Downloads a set where it is not yet here; gives its folder, or None where it needs none."""
    name, path = parse(name)
    if path is not None and not path.is_dir():
        raise GencapsError(f"{path} is not a folder; give one as folder:PATH")
    needs = ENTRIES[name].found_as if path is None else None
    return path if needs is None else obtain(needs, progress=progress)


def describe(spec: str, *, root: Path | None = None) -> Row:
    """Says what a set is and where it lies, without loading its pixels."""
    name, path = parse(spec)
    if path is not None:
        splits = folder.read(path)
        part = splits.train
        return Row(
            spec,
            "a folder of pictures",
            part.x.shape[-1],
            part.x.shape[1],
            len(part.names),
            part.labels,
            sum(map(len, splits)),
            str(path),
            True,
            "yours",
            "; ".join(part.notes),
        )
    entry = ENTRIES[name]
    pictures = sum(faces_asked(spec)) if name == "faces" else entry.pictures
    found = (name == "affnist" and locate(name, root)) or (entry.found_as and locate(entry.found_as, root))
    if entry.found_as is None:
        where = "built in"
    else:
        where = str(found) if found else f"not here: gencaps data get {name}"
    return Row(
        name,
        entry.title,
        entry.size,
        entry.channels,
        entry.classes,
        entry.labels,
        pictures,
        where,
        entry.found_as is None or bool(found),
        entry.license,
        entry.notes,
    )


def rows(*, root: Path | None = None) -> list[Row]:
    """Describes every named set."""
    return [describe(name, root=root) for name in ENTRIES]
