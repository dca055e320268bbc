"""The API over a model that many requests share: the same methods, the same answers, run in batches."""

from __future__ import annotations

from functools import partial
from typing import Any

from gencaps.api import Capsules
from gencaps.model import ABILITIES
from gencaps.service.batching import Batcher, Ticket

WORK = (*ABILITIES, "doubt", "explain")
"""The methods of a model that are run in batches."""


class SharedModel:
    """Stands in for a model within one request: its work goes through the batcher, the rest is the model's own."""

    def __init__(self, batcher: Batcher, ticket: Ticket) -> None:
        self._model = batcher.model
        for work in WORK:
            if callable(getattr(batcher.model, work, None)):
                # an attribute of its own, because a protocol is not looked for through __getattr__
                setattr(self, work, partial(batcher.ask, ticket, work))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class Together(Capsules):
    """A loaded model for one request, which runs together with those of others."""

    def __init__(self, alone: Capsules, batcher: Batcher, ticket: Ticket) -> None:
        shared: Any = SharedModel(batcher, ticket)
        self.model, self.origin = shared, alone.origin
        self.info, self.names, self.can = alone.info, alone.names, alone.can
