"""Random numbers that belong to a picture's place in the batch, not to the process that holds it."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from gencaps.errors import GencapsError


def mix_seed(*parts: int | str) -> int:
    """Mixes a run's seed with a step, an epoch or a purpose into one independent 63-bit seed."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


class Noise:
    """Draws the numbers of one step, so that any number of processes sees what a single one would.

    The numbers of the whole global batch are drawn from one seed and each process keeps the rows of
    its own pictures. With one process nothing is thrown away.

    Args:
        seed: the step's seed; the same seed gives the same numbers.
        device: where the numbers are drawn and used.
        rank: which slice of the global batch this process holds.
        world: how many processes share the global batch.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu", rank: int = 0, world: int = 1) -> None:
        if not 0 <= seed < 2**63:
            raise GencapsError(f"seed is {seed}; it must be a whole number from 0 to {2**63 - 1}")
        self.generator = torch.Generator(device).manual_seed(seed)
        self.rank, self.world = rank, world

    def normal(self, batch: int, *shape: int) -> Tensor:
        """Draws standard normal numbers of shape (batch, *shape)."""
        rows = torch.randn(batch * self.world, *shape, generator=self.generator, device=self.generator.device)
        return rows[self.rank * batch : (self.rank + 1) * batch]

    def uniform(self, batch: int, *shape: int) -> Tensor:
        """Draws numbers uniform in [0, 1) of shape (batch, *shape)."""
        rows = torch.rand(batch * self.world, *shape, generator=self.generator, device=self.generator.device)
        return rows[self.rank * batch : (self.rank + 1) * batch]
