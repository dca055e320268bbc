"""The in-memory picture set that every loader returns and every model trains on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

Labels = Literal["classes", "attributes"]


@dataclass(frozen=True)
class ImageSet:
    """Pictures as bytes with their labels; the whole set is two tensors.

    ``x`` may be backed by a memory-mapped file: nothing here reads it as a whole.
    """

    name: str
    """What was loaded, such as ``mnist``."""
    x: UInt8[Tensor, "n channels height width"]
    """Pixels, 0 to 255."""
    y: Int[Tensor, " n"] | UInt8[Tensor, "n attributes"]
    """A class index per picture (int64), or one 0/1 byte per attribute."""
    names: tuple[str, ...]
    """The classes, or the attributes, in the order of ``y``."""
    labels: Labels = "classes"
    """Whether ``y`` holds one class or many attributes."""
    notes: tuple[str, ...] = ()
    """What a reader should know: pictures that were converted, a set that was regenerated."""

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, index: slice | Int[Tensor, " k"]) -> ImageSet:
        return replace(self, x=self.x[index], y=self.y[index])


class Splits(NamedTuple):
    """The three parts of a data set; ``valid`` is empty (length 0) where none was asked for."""

    train: ImageSet
    valid: ImageSet
    test: ImageSet


def counts(set: ImageSet) -> dict[str, int]:
    """Counts the pictures of each class, or those that have each attribute, by name."""
    if set.labels == "attributes":
        numbers = set.y.sum(0, dtype=torch.int64)
    else:
        numbers = torch.bincount(set.y, minlength=len(set.names))
    return dict(zip(set.names, numbers.tolist(), strict=True))
