"""Reads what a user asks of a model in numbers, and refuses what it cannot mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.primitives.pose import from_parameters
from gencaps.wishes import read_dials


def numbered(given: int | Iterable[int], n: int, what: str) -> list[int]:
    """Looks capsules or objects up by number, from 0."""
    listed = [given] if isinstance(given, Integral) else list(given)  # pyright: ignore[reportArgumentType]
    for one in listed:
        if not isinstance(one, Integral) or not 0 <= int(one) < n:
            raise GencapsError(f"there is no {what} '{one}': this model has {what}s 0 to {n - 1}")
    if not listed:
        raise GencapsError(f"no {what} was named: name some of 0 to {n - 1}")
    return [int(one) for one in listed]


def by_hand(
    values: Float[Tensor, "n capsules dim"], dials: str | Mapping[str, float | int], names: Sequence[str]
) -> Float[Tensor, "n capsules dim"]:
    """Sets some numbers of capsules, the same for all pictures."""
    for (capsule, place), value in read_dials(dials, names, values.shape[-1]).items():
        values[:, capsule, place] = value
    return values


def motion(right: float, down: float, turn: float, scale: float) -> Float[Tensor, "2 3"]:
    """Gives a shift, a turn in degrees and a growth as one pose."""
    for name, value in {"right": right, "down": down, "turn": turn, "scale": scale}.items():
        if not abs(value) <= 1000:
            raise GencapsError(f"{name} is {value}; it must be from -1000 to 1000")
    if scale <= 0:
        raise GencapsError(f"scale is {scale}; it must be above 0")
    both = torch.full((2,), float(scale))
    return from_parameters(torch.tensor(math.radians(turn)), both, torch.zeros(()), torch.tensor([right, down]).float())


def intensities(given: Any) -> list[float]:
    """Reads one share or several, each from 0 to 1."""
    try:
        shares = [float(given)] if isinstance(given, Real) else [float(share) for share in given]
    except (TypeError, ValueError):
        shares = []
    if not shares or any(not 0 <= share <= 1 for share in shares):
        raise GencapsError(f"intensity is {given}; it goes from 0 to 1")
    return shares


def refuse_short(steps: int) -> None:
    """Refuses a walk without an end."""
    if steps < 2:
        raise GencapsError(f"steps is {steps}; a walk needs at least 2")
