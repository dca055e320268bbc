"""The Python face: load a model, hand it pictures in any form, get named results back."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from gencaps.data.arrays import Given, as_pictures
from gencaps.engine.devices import choose_device
from gencaps.engine.pretrained import from_pretrained, save_pretrained
from gencaps.errors import GencapsError, nearest
from gencaps.figures import grid, save_picture, to_images
from gencaps.model import (
    ABILITIES,
    CapsuleModel,
    Classifies,
    Encodes,
    Generates,
    Interpolates,
    PictureInfo,
    Reconstructs,
    Resamples,
    Samples,
    Scores,
    abilities,
)
from gencaps.primitives.noise import Noise

Ability = TypeVar("Ability")


class Classification(NamedTuple):
    """What is seen in each picture."""

    label: list[str]
    """The class of each picture, by name."""
    presence: Float[Tensor, "n entities"]
    """How surely each entity is there, 0 to 1, in the order of ``names``."""
    names: tuple[str, ...]


class Painted(NamedTuple):
    """Pictures that a model painted, values 0 to 1."""

    pictures: Float[Tensor, "n channels height width"]
    labels: list[str]
    """One a row: what was asked for or seen."""
    columns: int
    """How many pictures belong in a row."""

    def grid(self) -> Image.Image:
        """Lays the pictures out in rows, each with its label."""
        return grid(self.pictures, self.columns, row_labels=self.labels)

    def images(self) -> list[Image.Image]:
        """Gives the pictures one by one."""
        return to_images(self.pictures)

    def save(self, path: str | Path) -> Path:
        """Writes the grid as a PNG, JPEG or WebP."""
        return save_picture(self.grid(), Path(path))


class Capsules:
    """A trained model that answers. ``can`` lists what it can do; anything else is refused by name."""

    def __init__(self, model: CapsuleModel) -> None:
        self.model = model.eval()
        self.info: PictureInfo = model.pictures
        self.names = self.info.names
        self.can = abilities(model)

    def __repr__(self) -> str:
        kind = "grey" if self.info.channels == 1 else "colour"
        return (
            f"Capsules({self.model.paper} on {self.info.data}: {len(self.names)} {self.info.labels}, "
            f"{self.info.size} px {kind}; can {', '.join(self.can)})"
        )

    def pictures(self, given: Given) -> Float[Tensor, "n channels height width"]:
        """Brings pictures of any form to the size and channels that the model knows."""
        return as_pictures(given, self.info.size, self.info.channels).to(self.model.device)

    def _able(self, protocol: type[Ability]) -> Ability:
        if not isinstance(self.model, protocol):
            name = next(key for key, value in ABILITIES.items() if value is protocol)
            raise GencapsError(f"this {self.model.paper} model cannot {name}; it can {', '.join(self.can)}")
        return self.model

    def _seen(self, x: Tensor) -> list[str]:
        """Labels pictures with what they show; a model that cannot tell leaves the labels empty."""
        return self.classify(x).label if isinstance(self.model, Classifies) else [""] * len(x)

    @torch.no_grad()
    def classify(self, pictures: Given) -> Classification:
        """Names what each picture shows, with every entity's presence."""
        seen = self._able(Classifies).classify(self.pictures(pictures))
        if seen.label.ndim == 1:
            label = [self.names[i] for i in seen.label.tolist()]
        else:
            label = [", ".join(n for n, on in zip(self.names, row, strict=True) if on) for row in seen.label.tolist()]
        return Classification(label, seen.presence.cpu(), self.names)

    def presence(self, pictures: Given) -> Float[Tensor, "n entities"]:
        """Gives how surely each entity is in each picture, 0 to 1."""
        return self.classify(pictures).presence

    @torch.no_grad()
    def encode(self, pictures: Given) -> Any:
        """Gives the capsules of each picture as the paper's named tensors."""
        code = self._able(Encodes).encode(self.pictures(pictures))
        return type(code)(*(part.cpu() for part in code))

    @torch.no_grad()
    def reconstruct(self, pictures: Given, *, sample: bool = False, seed: int = 0) -> Painted:
        """Paints each picture again from its capsules: from their means, or from a sample of them."""
        x = self.pictures(pictures)
        noise = Noise(seed, x.device) if sample else None
        return Painted(self._able(Reconstructs).reconstruct(x, noise).cpu(), self._seen(x), 1)

    @torch.no_grad()
    def generate(self, classes: str | int | Iterable[Any] | None = None, *, n: int = 8, seed: int = 0) -> Painted:
        """Paints ``n`` new pictures of each class asked for, by name or index; of all classes if none is named.

        A model without classes, such as a GAN, paints ``n`` pictures of whatever it likes.
        """
        if n < 1:
            raise GencapsError(f"n is {n}; ask for at least 1 picture of each class")
        if isinstance(self.model, Samples) and not isinstance(self.model, Generates):
            if classes is not None:
                raise GencapsError(f"this {self.model.paper} model knows no classes: leave them out")
            return Painted(self.model.sample(n, Noise(seed, self.model.device)).cpu(), [""], n)
        chosen = range(len(self.names)) if classes is None else self.indices(classes)
        y = torch.tensor(list(chosen), device=self.model.device).repeat_interleave(n)
        made = self._able(Generates).generate(y, Noise(seed, self.model.device))
        return Painted(made.cpu(), [self.names[i] for i in chosen], n)

    @torch.no_grad()
    def score(self, pictures: Given) -> Float[Tensor, "n"]:
        """Gives how real each picture looks to the model, 0 to 1."""
        return self._able(Scores).score(self.pictures(pictures)).cpu()

    @torch.no_grad()
    def resample(self, pictures: Given, *, n: int = 8, seed: int = 0) -> Painted:
        """Paints what each picture shows in ``n`` other styles."""
        if n < 1:
            raise GencapsError(f"n is {n}; ask for at least 1 picture in another style")
        x = self.pictures(pictures)
        made = self._able(Resamples).resample(x.repeat_interleave(n, 0), Noise(seed, x.device))
        return Painted(made.cpu(), self._seen(x), n)

    @torch.no_grad()
    def interpolate(self, start: Given, end: Given, *, steps: int = 8) -> Painted:
        """Walks from each start to its end picture in equal steps through the capsules."""
        if steps < 2:
            raise GencapsError(f"steps is {steps}; a walk needs at least 2")
        first, last = self.pictures(start), self.pictures(end)
        if len(first) != len(last):
            raise GencapsError(f"{len(first)} pictures to start from and {len(last)} to end at: give as many of both")
        walk = self._able(Interpolates).interpolate(first, last, steps)
        ends = zip(self._seen(first), self._seen(last), strict=True)
        return Painted(walk.flatten(0, 1).cpu(), [f"{a} to {b}" if a or b else "" for a, b in ends], steps)

    def indices(self, classes: str | int | Iterable[Any]) -> list[int]:
        """Looks classes up by name or by index."""
        listed = [classes] if isinstance(classes, str | int | Integral) else list(classes)
        if not listed:
            raise GencapsError(f"no class was named: name some of {', '.join(self.names)}")
        found = []
        for one in listed:
            if isinstance(one, str) and one in self.names:
                found.append(self.names.index(one))
            elif isinstance(one, Integral) and 0 <= int(one) < len(self.names):
                found.append(int(one))
            else:
                raise GencapsError(f"this model knows no class '{one}'{nearest(str(one), self.names)}")
        return found

    def save_pretrained(self, folder: str | Path) -> Path:
        """Writes a model folder that ``gencaps.load`` reads."""
        return save_pretrained(self.model, folder)


def load(model: str | Path, device: str = "auto") -> Capsules:
    """Loads a run folder, a model folder or a hub id."""
    return Capsules(from_pretrained(model, choose_device(device)))
