"""Pictures to try a model with: of its own test set where that is here, and never fetched."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from gencaps.api import Capsules
from gencaps.api import load as load_model
from gencaps.data import digits, synthetic
from gencaps.data.catalog import ENTRIES
from gencaps.data.download import locate
from gencaps.data.images import ImageSet
from gencaps.data.loading import load
from gencaps.engine.pretrained import shipped
from gencaps.errors import GencapsError
from gencaps.service.answers import Examples, in_base64

COUNT = 24
SEED = 1
"""Of the synthetic faces in the test part."""
TEN = tuple("0123456789")


def examples(capsules: Capsules) -> Examples:
    """Finds pictures: the test set's, new ones of the model of that set that comes along, built-in digits for another
    model of digits, or new ones of the model itself."""
    found = _test_set(capsules.info.data)
    if found is not None:
        return _listed(capsules, found, f"the test set of {found.name}")
    if capsules.info.data in shipped():
        return _painted(capsules, _new_along(capsules.info.data), f"painted by the model {capsules.info.data}")
    if capsules.info.names == TEN:
        return _listed(capsules, digits.read(), "the built-in digits")
    if not {"generate", "sample"} & set(capsules.can):
        black = torch.zeros(1, capsules.info.channels, capsules.info.size, capsules.info.size)
        return Examples(source="nothing: open a file", labels=["black"], pictures=in_base64(black))
    return _painted(capsules, _new(capsules), "painted by the model")


class New(NamedTuple):
    """New pictures and what they show."""

    pictures: Tensor
    labels: list[str]


def _painted(capsules: Capsules, new: New, source: str) -> Examples:
    """Lists new pictures as the model takes them."""
    return Examples(source=source, labels=new.labels, pictures=in_base64(capsules.pictures(new.pictures).cpu()))


@cache
def _new_along(name: str) -> New:
    """Paints pictures by a model that comes along, once for all models of its set."""
    return _new(load_model(shipped()[name], "cpu"))


def _new(painter: Capsules) -> New:
    """Paints pictures, those of classes in turn."""
    by_class = painter.info.labels == "classes" and "generate" in painter.can
    each = -(-COUNT // len(painter.names)) if by_class else COUNT
    made = painter.generate(n=each, seed=SEED)
    order = list(range(len(made.pictures)))
    if by_class:
        order.sort(key=lambda k: (k % made.columns, k // made.columns))
    return New(made.pictures[order[:COUNT]], [made.labels[k // made.columns] for k in order[:COUNT]])


def _test_set(name: str) -> ImageSet | None:
    """Loads the test part of a set that is here."""
    if name == "faces":
        return synthetic.faces(COUNT, 64, SEED)
    if name not in ENTRIES or (ENTRIES[name].found_as and locate(ENTRIES[name].found_as or "") is None):
        return None
    try:
        return load(name, valid=0.0).test
    except GencapsError:  # a set whose files are damaged is as good as none
        return None


def _listed(capsules: Capsules, images: ImageSet, source: str) -> Examples:
    """Lists the first pictures, those of classes in turn."""
    places = torch.arange(min(COUNT, len(images)))
    if images.labels == "classes":
        order = torch.argsort(images.y, stable=True)
        rank = torch.zeros_like(order)
        counts = torch.bincount(images.y, minlength=len(images.names))
        starts = counts.cumsum(0) - counts
        rank[order] = torch.arange(len(order)) - starts[images.y[order]]
        places = torch.argsort(rank * len(images.names) + images.y)[:COUNT]
        labels = [images.names[int(k)] for k in images.y[places]]
    else:
        rows = images.y[places].tolist()
        labels = [", ".join(n for n, on in zip(images.names, row, strict=True) if on) for row in rows]
    x = capsules.pictures(images.x[places])
    return Examples(source=source, labels=labels, pictures=in_base64(x.cpu()))
