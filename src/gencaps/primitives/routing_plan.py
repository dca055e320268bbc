"""How the fused kernels of routing cut a problem into tiles."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torch import Tensor

LEAST = 16
"""The least side of a matrix that tensor cores multiply."""
CAPSULES = 32
"""Output capsules that one program settles."""


class Tile(NamedTuple):
    """What one program works on at a time, at most."""

    pictures: int
    numbers: int
    """Of input capsules: so many of them times their dimension."""
    pair: bool = False
    """Whether two output capsules are done at once, where there are two; for kernels that know it."""
    programs: int = 1024
    """How many programs there should be at least, to keep every processor of a large GPU busy; for sums over chunks."""
    warps: int = 4
    stages: int = 3
    """How many steps of a loop are under way at once."""


# each the fastest of a dozen on an H200 (docs/routing.md)
SUMS, LOGITS, TO_INPUTS, TO_WEIGHTS = Tile(64, 128, True), Tile(32, 64), Tile(64, 64), Tile(16, 128, True)


class Plan(NamedTuple):
    """How a problem is cut for one kernel."""

    sizes: tuple[int, int, int, int, int]
    """batch, caps_in, caps_out, dim_out, dim_in."""
    constants: dict[str, int]
    """What the kernel is compiled for: pictures and input capsules of a tile, both dimensions padded to powers of two,
    the output capsules, both dimensions, and the tile's warps and stages."""
    pair: bool
    """Whether a program does two output capsules."""
    tiles: int
    """Tiles of a chunk of input capsules."""
    by_tile: tuple[int, int, int]
    """The grid of a kernel that runs over the output capsules itself."""
    by_chunk: tuple[int, int, int]
    """The grid of a kernel that runs over a chunk of the input capsules."""
    by_weight: tuple[int, int, int]
    """The grid of a kernel that runs over the pictures."""

    @classmethod
    def of(cls, u: Tensor, weight: Tensor, tile: Tile) -> Plan:
        """Plans for input capsules u and weights."""
        (batch, caps_in, dim_in), (caps_out, _, dim_out, _) = u.shape, weight.shape
        return _plan(batch, caps_in, caps_out, dim_out, dim_in, tile)

    @property
    def extent(self) -> tuple[int, int]:
        """What a kernel is told, not compiled for: batch and caps_in."""
        return self.sizes[:2]

    @property
    def chunks(self) -> int:
        """Chunks of the input capsules."""
        return self.by_chunk[2]


@lru_cache(512)
def _plan(batch: int, caps_in: int, caps_out: int, dim_out: int, dim_in: int, tile: Tile) -> Plan:
    """Cuts tiles, smaller ones where there is less."""
    di, do = padded(dim_in), max(LEAST, padded(dim_out))
    bb = min(tile.pictures, max(LEAST, padded(batch)))
    ib = max(1, LEAST // di, min(tile.numbers // di, padded(caps_in)))
    pair = tile.pair and caps_out > 1
    tiles, blocks, outputs = parts(caps_in, ib), max(1, parts(batch, bb)), parts(caps_out, 2 if pair else 1)
    per_chunk = parts(tiles, min(tiles, max(1, parts(tile.programs, blocks * outputs))))
    constants = {"BB": bb, "IB": ib, "DI": di, "DO": do, "J": caps_out, "O": dim_out, "D": dim_in}
    constants |= {"num_warps": tile.warps, "num_stages": tile.stages}
    return Plan(
        (batch, caps_in, caps_out, dim_out, dim_in),
        constants,
        pair,
        per_chunk,
        (blocks, tiles, 1),
        (blocks, outputs, parts(tiles, per_chunk)),
        (outputs, tiles, 1),
    )


def share(u: Tensor, weight: Tensor, over_outputs: bool) -> float:
    """Gives the coefficient of the first round."""
    return 1 / (weight.shape[0] if over_outputs else u.shape[1])


def parts(whole: int, part: int) -> int:
    """Counts the parts that a whole is cut into."""
    return -(-whole // part)


def padded(size: int) -> int:
    """Gives the next power of two."""
    return 1 << (size - 1).bit_length()
