"""Collects losses on the device and fetches them rarely, so that no step waits for the host."""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor

from gencaps.errors import GencapsError


class Diverged(GencapsError):
    """A loss is no longer a number."""


class Meter:
    """Means of the loss terms of an epoch; the terms stay on the device until ``flush``."""

    def __init__(self, sums: dict[str, float] | None = None, count: int = 0) -> None:
        self.sums: dict[str, float] = dict(sums or {})
        self.count = count
        self.pending: list[tuple[int, dict[str, Tensor]]] = []

    def add(self, step: int, terms: dict[str, Tensor]) -> None:
        """Notes a step's terms without looking at them."""
        self.pending.append((step, {name: value.detach() for name, value in terms.items()}))

    def flush(self) -> dict[str, float]:
        """Fetches what is pending, refuses what is not finite, and gives the means so far."""
        if self.pending:
            names = list(self.pending[0][1])
            table = torch.stack([torch.stack([terms[n].float() for n in names]) for _, terms in self.pending])
            for (step, _), row in zip(self.pending, table.tolist(), strict=True):
                for name, value in zip(names, row, strict=True):
                    if not math.isfinite(value):
                        raise Diverged(f"step {step}: the loss term '{name}' is {value}")
                    self.sums[name] = self.sums.get(name, 0.0) + value
            self.count += len(self.pending)
            self.pending.clear()
        return {name: total / self.count for name, total in self.sums.items()}


class Stopwatch:
    """Adds up the time of one part of a step in the order of the device's work, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        self.on_gpu = device.type == "cuda"
        self.seconds = 0.0
        self.events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.started: float | torch.cuda.Event = 0.0

    def _now(self) -> float | torch.cuda.Event:
        if not self.on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def start(self) -> None:
        """Begins a lap."""
        self.started = self._now()

    def stop(self) -> None:
        """Ends the lap."""
        ended = self._now()
        if isinstance(ended, float) and isinstance(self.started, float):
            self.seconds += ended - self.started
        elif isinstance(ended, torch.cuda.Event) and isinstance(self.started, torch.cuda.Event):
            self.events.append((self.started, ended))

    def total(self) -> float:
        """Gives the seconds so far; on a GPU it waits for the laps to end."""
        if self.events:
            self.events[-1][1].synchronize()
            self.seconds += sum(a.elapsed_time(b) for a, b in self.events) / 1000.0
            self.events.clear()
        return self.seconds
