"""Batches for training in an order fixed by seed and epoch alone, gathered where the pictures live."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from gencaps.data.images import ImageSet
from gencaps.data.splits import permutation
from gencaps.errors import GencapsError

AHEAD = 4
"""Batches gathered before they are asked for, where the set does not fit the device."""


class Batch(NamedTuple):
    """Some pictures and their labels, on the device of training."""

    x: UInt8[Tensor, "batch channels height width"]
    y: Int[Tensor, " batch"] | UInt8[Tensor, "batch attributes"]


class Batches:
    """Yields a set in a new order each epoch.

    The order depends on (seed, epoch) alone, not on the device nor on what was drawn before, so a run that is
    resumed in the middle of an epoch sees the batches it would have seen. A set of up to ``resident_bytes``
    lies on the device and is gathered there by index; a larger one is gathered on the host by a thread that
    works ahead. What is left over at the end of an epoch, less than a batch, is not shown in that epoch.

    Args:
        set: the pictures.
        batch: pictures in a step over all ranks together; a smaller set gives smaller batches.
        seed: fixes the order.
        device: where batches are wanted.
        rank, world: this process among all; each takes its contiguous slice of every batch.
        resident_bytes: the largest set that is moved to the device as a whole.
    """

    def __init__(
        self,
        set: ImageSet,
        batch: int,
        *,
        seed: int,
        device: torch.device,
        rank: int = 0,
        world: int = 1,
        resident_bytes: int = 8 * 2**30,
    ) -> None:
        if batch < 1:
            raise GencapsError(f"a batch of {batch} is not possible; give 1 or more")
        if batch % world:
            raise GencapsError(f"a batch of {batch} does not divide over {world} processes; give a multiple")
        if len(set) < world:
            raise GencapsError(f"{set.name} has {len(set)} pictures, too few for {world} process(es)")
        self.set = set
        self.seed, self.device, self.rank, self.world = seed, device, rank, world
        self.batch = min(batch, len(set) // world * world)
        """Pictures in a step over all ranks."""
        self.steps = max(1, len(set) // self.batch)
        """Steps in an epoch."""
        self.resident = set.x.nbytes <= resident_bytes
        self._y = set.y.to(device)
        self._x = set.x.to(device) if self.resident else set.x

    def _index(self, epoch: int, start: int) -> Int[Tensor, "steps local"]:
        """Lists this rank's pictures for each step of an epoch from ``start`` on, on the CPU."""
        order = permutation(len(self.set), self.seed, epoch)[: self.steps * self.batch]
        return order.view(self.steps, self.world, -1)[start:, self.rank].contiguous()

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yields the batches of an epoch from step ``start`` on."""
        index = self._index(epoch, start)
        if self.resident:
            yield from self._gather(index.to(self.device))
        else:
            yield from self._gather_ahead(index)

    def _gather(self, index: Int[Tensor, "steps local"]) -> Iterator[Batch]:
        for chosen in index:
            yield Batch(self._x.index_select(0, chosen), self._y.index_select(0, chosen))

    def _gather_ahead(self, index: Int[Tensor, "steps local"]) -> Iterator[Batch]:
        """Gathers on the host in a thread, a few batches ahead, and copies from pinned memory meanwhile."""
        cuda = self.device.type == "cuda"
        copies = torch.cuda.Stream(self.device) if cuda else None

        def gather(chosen: Int[Tensor, " local"]) -> tuple[Batch, torch.cuda.Event | None]:
            x = torch.empty((len(chosen), *self._x.shape[1:]), dtype=torch.uint8, pin_memory=cuda)
            torch.index_select(self._x, 0, chosen, out=x)
            if copies is None:
                return Batch(x.to(self.device), self._y.index_select(0, chosen.to(self.device))), None
            with torch.cuda.stream(copies):
                there = chosen.pin_memory().to(self.device, non_blocking=True)
                batch = Batch(x.to(self.device, non_blocking=True), self._y.index_select(0, there))
            copied = torch.cuda.Event()
            copied.record(copies)
            return batch, copied

        if copies is not None:  # the labels must have arrived before another stream reads them
            copies.wait_stream(torch.cuda.current_stream(self.device))
        pool = ThreadPoolExecutor(1, "gencaps-batches")
        steps = iter(index)
        waiting = deque(pool.submit(gather, chosen) for chosen in islice(steps, AHEAD))
        try:
            while waiting:
                batch, copied = waiting.popleft().result()
                waiting.extend(pool.submit(gather, chosen) for chosen in islice(steps, 1))
                if copied is not None:
                    here = torch.cuda.current_stream(self.device)
                    here.wait_event(copied)
                    for part in batch:  # or the memory could be used again while this stream reads it
                        part.record_stream(here)
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)


def iterate(set: ImageSet, batch: int, device: torch.device) -> Iterator[Batch]:
    """Yields a whole set in order, for evaluation; the last batch may be short."""
    for start in range(0, len(set), batch):
        here = slice(start, start + batch)
        yield Batch(set.x[here].to(device, non_blocking=True), set.y[here].to(device, non_blocking=True))
