"""Puts the arguments of several calls of a model together and takes the results apart again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from gencaps.primitives.noise import Noise

COUNTED = ("sample", "walk")
"""What a model does for a number of pictures, the first argument, instead of for a batch of them."""


class JoinedNoise(Noise):
    """Draws each call's rows from the call's own stream: its numbers do not depend on who it runs with."""

    def __init__(self, parts: Sequence[Noise], rows: Sequence[int]) -> None:
        self.parts, self.rows = parts, rows
        self.generator, self.rank, self.world = parts[0].generator, 0, 1

    def normal(self, batch: int, *shape: int) -> Tensor:
        """Draws standard normal numbers of shape (batch, *shape)."""
        self._check(batch)
        return torch.cat([part.normal(n, *shape) for part, n in zip(self.parts, self.rows, strict=True)])

    def uniform(self, batch: int, *shape: int) -> Tensor:
        """Draws numbers uniform in [0, 1) of shape (batch, *shape)."""
        self._check(batch)
        return torch.cat([part.uniform(n, *shape) for part, n in zip(self.parts, self.rows, strict=True)])

    def _check(self, batch: int) -> None:
        if batch != sum(self.rows):
            raise ValueError(f"{batch} rows of noise for {sum(self.rows)} pictures belong to nobody")


def rows(work: str, arguments: tuple[Any, ...]) -> int:
    """Counts the pictures of a call."""
    return arguments[0] if work in COUNTED else len(arguments[0])


def likeness(work: str, arguments: tuple[Any, ...]) -> Hashable:
    """Is equal for calls that can run as one: the same work on pictures of one shape with the same numbers."""
    return work, tuple(_kind(one) for one in (arguments[1:] if work in COUNTED else arguments))


def _kind(argument: Any) -> Hashable:
    if isinstance(argument, Tensor):
        return "tensor", argument.dtype, tuple(argument.shape[1:])
    return "noise" if isinstance(argument, Noise) else argument


def merge(work: str, calls: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Makes the arguments of one call out of those of several alike ones."""
    counts = [rows(work, arguments) for arguments in calls]
    merged = [_joined(same, counts) for same in zip(*calls, strict=True)]
    return (sum(counts), *merged[1:]) if work in COUNTED else tuple(merged)


def _joined(same: tuple[Any, ...], counts: list[int]) -> Any:
    if isinstance(same[0], Tensor):
        return torch.cat(same)
    return JoinedNoise(same, counts) if isinstance(same[0], Noise) else same[0]


def split(result: Any, counts: Sequence[int]) -> list[Any]:
    """Gives each call its rows of a tensor, or of a tuple of tensors, named or not."""
    if isinstance(result, Tensor):
        return list(result.split(list(counts)))  # refuses counts that do not add up
    if isinstance(result, tuple):
        parts = zip(*(split(one, counts) for one in result), strict=True)
        make = getattr(type(result), "_make", type(result))
        return [make(part) for part in parts]
    raise TypeError(f"{type(result).__name__} cannot be taken apart")


class Rewind:
    """Remembers where the streams of some calls stand, to begin again where running them together failed."""

    def __init__(self, calls: Sequence[tuple[Any, ...]]) -> None:
        streams = [one.generator for arguments in calls for one in arguments if isinstance(one, Noise)]
        self.states = [(stream, stream.get_state()) for stream in streams]

    def __call__(self) -> None:
        """Puts them back."""
        for stream, state in self.states:
            stream.set_state(state)
