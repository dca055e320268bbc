"""Cuts a set into parts by a seed, and writes down what came out."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gencaps.data.images import ImageSet, Splits
from gencaps.errors import GencapsError


def generator_of(*seeds: int) -> torch.Generator:
    """Makes a CPU generator fixed by several whole numbers, such as a seed and an epoch."""
    # the count goes first, because numpy takes (s,) and (s, 0) for the same
    entropy = [len(seeds), *(abs(s) * 2 + (s < 0) for s in seeds)]
    state = np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]
    # torch keeps the sign bit for itself
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def permutation(n: int, *seeds: int) -> Int[Tensor, " n"]:
    """Orders ``n`` pictures at random, fixed by the seeds alone."""
    return torch.randperm(n, generator=generator_of(*seeds))


def _quotas(sizes: Int[Tensor, " groups"], share: float) -> Int[Tensor, " groups"]:
    """Shares out ``round(share * n)`` places by largest remainder, one or more where there are two."""
    exact = sizes.double() * share
    quota = exact.floor().long()
    missing = round(float(sizes.sum()) * share) - int(quota.sum())
    # a stable order makes equal remainders fall the same way everywhere
    first = torch.argsort(exact - exact.floor(), descending=True, stable=True)[: max(missing, 0)]
    quota[first] += 1
    return torch.minimum(quota.clamp(min=1), (sizes - 1).clamp(min=0))


def held_out(y: Int[Tensor, " n"] | Int[Tensor, "n attributes"], share: float, *seeds: int) -> Bool[Tensor, " n"]:
    """Marks a share of the pictures to hold out: of every class the same share, chosen by the seeds.

    A class with one picture keeps it; with two or more it gives at least one. Attributes overlap, so they
    are cut as one group.
    """
    n = y.shape[0]
    if share == 0 or n == 0:
        return torch.zeros(n, dtype=torch.bool)
    group = y if y.ndim == 1 else torch.zeros(n, dtype=torch.int64)
    sizes = torch.bincount(group)
    shuffled = permutation(n, *seeds)
    order = shuffled[torch.argsort(group[shuffled], stable=True)]
    rank = torch.arange(n) - (sizes.cumsum(0) - sizes)[group[order]]
    held = torch.zeros(n, dtype=torch.bool)
    held[order] = rank < _quotas(sizes, share)[group[order]]
    return held


def cut(set: ImageSet, share: float, *seeds: int) -> tuple[ImageSet, ImageSet]:
    """Cuts a set in two, (kept, held out), each in the order of the original."""
    if not 0 <= share < 1:
        raise GencapsError(f"a share of {share} cannot be held out; give a number from 0 to below 1")
    if share == 0:
        return set, set[:0]
    held = held_out(set.y.long(), share, *seeds)
    return set[(~held).nonzero()[:, 0]], set[held.nonzero()[:, 0]]


def _fingerprint(set: ImageSet, pictures: int = 64) -> str:
    """Hashes the labels, the shape and a few pictures spread over the set: quick, whatever the size."""
    digest = hashlib.sha256(repr((tuple(set.x.shape), set.names, set.labels)).encode())
    digest.update(np.ascontiguousarray(set.y.cpu().numpy()).tobytes())
    if len(set):
        chosen = torch.linspace(0, len(set) - 1, min(pictures, len(set))).round().long()
        digest.update(set.x[chosen.to(set.x.device)].cpu().numpy().tobytes())
    return digest.hexdigest()


def split_record(splits: Splits) -> dict[str, Any]:
    """Describes the parts for a run's record: sizes, shape, and a hash of each part's content."""
    train = splits.train
    return {
        "name": train.name,
        "shape": list(train.x.shape[1:]),
        "labels": train.labels,
        "names": list(train.names),
        **{part: {"pictures": len(set), "sha256": _fingerprint(set)} for part, set in splits._asdict().items()},
    }
