"""What a model answers with: pictures that it painted, and what it sees in pictures."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jaxtyping import Float
from PIL import Image
from torch import Tensor

from gencaps.figures import grid, save_picture, to_images


class Classification(NamedTuple):
    """What is seen in each picture."""

    label: list[str]
    """The class of each picture, by name."""
    presence: Float[Tensor, "n entities"]
    """How surely each entity is there, 0 to 1, in the order of ``names``."""
    names: tuple[str, ...]
    unknown: Float[Tensor, "n"] | None = None
    """How likely each picture shows none of them, 0 to 1; ``None`` where the model cannot tell."""


class Painted(NamedTuple):
    """Pictures that a model painted, values 0 to 1."""

    pictures: Float[Tensor, "n channels height width"]
    labels: list[str]
    """One a row: what was asked for or seen."""
    columns: int
    """How many pictures belong in a row."""

    @classmethod
    def in_rows(cls, pictures: Float[Tensor, "n channels height width"], most: int) -> Painted:
        """Lays pictures that nobody asked for by name in rows of ``most``, without labels."""
        columns = min(most, len(pictures))
        return cls(pictures, [""] * -(-len(pictures) // columns), columns)

    def grid(self) -> Image.Image:
        """Lays the pictures out in rows, each with its label."""
        return grid(self.pictures, self.columns, row_labels=self.labels)

    def images(self) -> list[Image.Image]:
        """Gives the pictures one by one."""
        return to_images(self.pictures)

    def sheet(self) -> Image.Image:
        """Gives the grid; a single picture as it is, so that a model can take it again."""
        return self.images()[0] if len(self.pictures) == 1 else self.grid()

    def save(self, path: str | Path) -> Path:
        """Writes the sheet as a PNG, JPEG or WebP."""
        return save_picture(self.sheet(), Path(path))
