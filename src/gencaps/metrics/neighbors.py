"""Nearest neighbours by brute force, exact and in parts."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_unusable

BYTES = 2**28
"""Memory that a part of a distance matrix may take."""
CACHE_BYTES = 2**22
SPARE = 3
"""Neighbours beyond those asked for that the fast pass hands to the exact one."""


class Neighbors(NamedTuple):
    """The nearest points of each query, nearest first; of equally far ones the lower index first."""

    sq_distance: Float[Tensor, "queries k"]
    ids: Int[Tensor, "queries k"]


def nearest(queries: Float[Tensor, "queries features"], points: Float[Tensor, "points features"], k: int) -> Neighbors:
    """Finds the k nearest points of each query by brute force: float64's answer at float32's speed.

    A product of matrices in float32 picks a few points more than k; their distances are then taken in float64
    from differences, so that a point is at exactly 0 from itself. Where float32's rounding could have left a
    nearer point out, the whole row is done in float64. Never holds more than about 256 MB of distances.

    Args:
        queries: the points whose neighbours are asked for; one that is also in ``points`` finds itself.
        points: where neighbours are looked for, at least k.
        k: neighbours of each.
    """
    if not 1 <= k <= len(points):
        raise GencapsError(f"{k} neighbours asked for among {len(points)} points; give 1 to {len(points)}")
    refuse_unusable(points, "the points")
    if queries is not points:
        refuse_unusable(queries, "the points whose neighbours are asked for")
    queries, points = _at_least_float32(queries.to(points.device)), _at_least_float32(points)
    # TF32 and bfloat16 round too much to be sure of anything, and accelerators do float64 fast enough
    if points.device.type != "cpu" or torch.get_float32_matmul_precision() != "highest":
        return _float64_pass(queries, points, k)
    found, sure = _float32_pass(queries, points, k)
    unsure = (~sure).nonzero().squeeze(1)
    if len(unsure):
        again = _float64_pass(queries[unsure], points, k)
        found.sq_distance[unsure], found.ids[unsure] = again
    return found


def merged(one: Neighbors, other: Neighbors, offset: int, k: int) -> Neighbors:
    """Gives the k nearest points of two sets together, by the nearest of each: what is known of a set is used again.

    Args:
        one: the nearest k points of the first set, or all of them.
        other: the same of the second, whose indices go on from ``offset``, the size of the first.
        k: neighbours of each.
    """
    sq_distance = torch.cat([one.sq_distance, other.sq_distance], 1)
    # stable, so that of equally far points the lower index comes first
    sq_distance, order = sq_distance.sort(dim=1, stable=True)
    ids = torch.cat([one.ids, other.ids + offset], 1).gather(1, order)
    return Neighbors(sq_distance[:, :k], ids[:, :k])


def _float32_pass(queries: Tensor, points: Tensor, k: int) -> tuple[Neighbors, Tensor]:
    """Finds neighbours, and says of each query whether no point left out can be as near as its k-th.

    The ranks ``|y|^2 - 2 x . y`` of f features are off by at most ``2 (f + 8) u |x| |y| + 8 u (|x|^2 + |y|^2)``,
    with ``u = 2^-24``, in whatever order a product is summed (Higham, 2002, Sec. 3.1).
    """
    centre = points.mean(0)  # distances stay, and rounding, which grows with lengths, shrinks
    slim = (points - centre).float()
    slim_sq = _sq_length(slim)
    longest, unit = slim_sq.max().sqrt(), torch.finfo(torch.float32).eps / 2
    candidates = min(k + SPARE, len(points))
    rows = min(rows_held(len(points), 16), len(queries))  # a quarter of the bound: first touching memory is slow
    room = slim.new_empty(rows, len(points))  # fresh memory for each part would cost as much as its product
    parts, sure = [], []
    for part in queries.split(rows):
        x = (part - centre).float()
        x_sq = _sq_length(x)
        ranks = torch.addmm(slim_sq.float(), x, slim.T, alpha=-2, out=room[: len(x)])
        farthest, index = ranks.topk(candidates, largest=False)
        parts.append(_measure(part, points, index, k))
        off = 2 * (x.shape[1] + 8) * unit * x_sq.sqrt() * longest + 8 * unit * (x_sq + longest.square())
        left_out = farthest[:, -1].double() + x_sq - off
        sure.append((left_out > parts[-1].sq_distance[:, -1]) | (candidates == len(points)))
    return _joined(parts), torch.cat(sure)


def _float64_pass(queries: Tensor, points: Tensor, k: int) -> Neighbors:
    centre = points.mean(0, dtype=torch.float64)
    wide = points - centre  # one copy: float32 minus float64 is float64
    wide_sq = _sq_length(wide)
    candidates = min(k + SPARE, len(points))
    parts = []
    for part in queries.split(rows_held(len(points), 16)):
        ranks = torch.addmm(wide_sq, part.double() - centre, wide.T, alpha=-2)
        last = ranks.kthvalue(candidates, dim=1, keepdim=True).values
        nearer, level = ranks < last, ranks == last
        # copies of one picture are level; topk would take any of them
        kept = nearer | (level & (level.cumsum(1) <= candidates - nearer.sum(1, keepdim=True)))
        parts.append(_measure(part, points, kept.nonzero()[:, 1].reshape(-1, candidates), k))
    return _joined(parts)


def _measure(queries: Tensor, points: Tensor, index: Tensor, k: int) -> Neighbors:
    """Orders candidates by their distance in float64, then by index, and keeps k."""
    index = index.sort(1).values
    sq_distance = torch.empty(index.shape, dtype=torch.float64, device=points.device)
    # a part that stays in the processor's cache takes a third of the time; an accelerator wants larger ones
    held = CACHE_BYTES if points.device.type == "cpu" else BYTES
    rows = max(1, held // (8 * index.shape[1] * points.shape[1]))
    for start in range(0, len(queries), rows):
        here = slice(start, start + rows)
        gaps = points[index[here]].double() - queries[here].double()[:, None]
        sq_distance[here] = torch.einsum("qcf,qcf->qc", gaps, gaps)
    sq_distance, order = sq_distance.sort(dim=1, stable=True)
    return Neighbors(sq_distance[:, :k], index.gather(1, order)[:, :k])


def _joined(parts: list[Neighbors]) -> Neighbors:
    return Neighbors(torch.cat([part.sq_distance for part in parts]), torch.cat([part.ids for part in parts]))


def _sq_length(x: Tensor) -> Tensor:
    """Gives ``|x|^2`` of each row in float64 without holding all rows in float64."""
    return torch.cat([part.double().square().sum(1) for part in x.split(4096)])


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def rows_held(columns: int, bytes_each: int) -> int:
    """Gives how many rows of a matrix may be held at a time."""
    return max(1, BYTES // (bytes_each * columns))
