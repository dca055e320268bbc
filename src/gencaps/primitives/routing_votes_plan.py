"""How the kernels that do all output capsules at once cut a problem."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torch import Tensor

from gencaps.primitives.routing_plan import LEAST, padded, parts


class Wide(NamedTuple):
    """What one program works on at a time, at most."""

    pictures: int
    numbers: int
    """Of input capsules: so many of them times their dimension."""
    outputs: int
    """Numbers of output capsules: so many of them times their dimension."""
    programs: int
    """How many programs there should be about: two for each processor of a large GPU, or four."""
    warps: int
    stages: int
    """How many steps of the loop are under way at once."""


# each the fastest of about twenty on an H200 (docs/routing.md)
EVEN = Wide(128, 64, 64, 264, 8, 3)
VOTES = Wide(64, 1, 256, 264, 4, 3)
"""One input capsule at a time; no more outputs, since a program holds their votes, V and the sums in registers."""
WIDEST = 32
"""Numbers of an input capsule at most: its matrices for all output capsules lie in shared memory, several at a time."""


class WidePlan(NamedTuple):
    """How a problem is cut for one kernel."""

    constants: dict[str, int]
    """What the kernel is compiled for."""
    grid: tuple[int, int, int]
    """Blocks of pictures, blocks of output capsules' numbers, chunks of the input capsules."""

    @property
    def chunks(self) -> int:
        """Chunks of the input capsules."""
        return self.grid[2]


def in_two(caps_out: int) -> tuple[int, int]:
    """Gives two powers of two, the second perhaps 0, that hold the output capsules."""
    most = 1 << (caps_out.bit_length() - 1)
    return most, padded(caps_out - most) if caps_out > most else 0


def fits(weight: Tensor) -> bool:
    """Tells whether a program can hold the votes of one input capsule for all output capsules, and its matrices."""
    caps_out, _, dim_out, dim_in = map(int, weight.shape)
    return sum(in_two(caps_out)) * max(LEAST, padded(dim_out)) <= VOTES.outputs and dim_in <= WIDEST


@lru_cache(512)
def even_plan(batch: int, caps_in: int, caps_out: int, dim_out: int, dim_in: int, tile: Wide) -> WidePlan:
    """Cuts the matrix product of the even round."""
    bb = min(tile.pictures, max(LEAST, padded(batch)))
    kb, nb = (
        min(most, max(LEAST, padded(size)))
        for most, size in ((tile.numbers, caps_in * dim_in), (tile.outputs, caps_out * dim_out))
    )
    blocks, columns, tiles = max(1, parts(batch, bb)), parts(caps_out * dim_out, nb), parts(caps_in * dim_in, kb)
    per_chunk = parts(tiles, min(tiles, max(1, tile.programs // (blocks * columns))))
    constants = {"BB": bb, "KB": kb, "NB": nb, "TILES": per_chunk, "J": caps_out, "O": dim_out, "D": dim_in}
    constants |= {"num_warps": tile.warps, "num_stages": tile.stages}
    return WidePlan(constants, (blocks, columns, parts(tiles, per_chunk)))


@lru_cache(512)
def votes_plan(batch: int, caps_in: int, caps_out: int, dim_out: int, dim_in: int, tile: Wide) -> WidePlan:
    """Cuts a round that holds votes."""
    bb, di, do = (max(LEAST, padded(size)) for size in (batch, dim_in, dim_out))
    bb, (most, rest) = min(tile.pictures, bb), in_two(caps_out)
    blocks = max(1, parts(batch, bb))
    per_chunk = parts(caps_in, min(caps_in, max(1, tile.programs // blocks)))
    constants = {"BB": bb, "DI": di, "DO": do, "MOST": most, "REST": rest, "COUNT": per_chunk}
    constants |= {"J": caps_out, "O": dim_out, "D": dim_in, "num_warps": tile.warps, "num_stages": tile.stages}
    return WidePlan(constants, (blocks, 1, parts(caps_in, per_chunk)))
