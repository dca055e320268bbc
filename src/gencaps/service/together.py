"""The API over a model that many requests share: the same methods, the same answers, run in batches."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from gencaps.abilities import ABILITIES
from gencaps.api import Capsules
from gencaps.data.arrays import Given
from gencaps.data.pictures import to_tensor
from gencaps.service.batching import Batcher, Ticket

WORK = (*(set(ABILITIES) - {"explore", "refine"}), "doubt", "dials", "moved", "strongest")
"""The methods of a model that are run in batches; a walk through one capsule is the same for all."""


class SharedModel:
    """Stands in for a model within one request: its work goes through the batcher, the rest is the model's own."""

    _model: Any

    def __init__(self, batcher: Batcher, ticket: Ticket) -> None:
        self._batcher, self._ticket = batcher, ticket

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def stand_in(model: Any) -> type[SharedModel]:
    """Makes the class that stands in for one model: it can do what the model can, as protocols look for."""

    def asking(work: str) -> Any:
        return lambda self, *arguments: self._batcher.ask(self._ticket, work, *arguments)

    able = {work: asking(work) for work in WORK if callable(getattr(model, work, None))}
    # looked up once: a model finds its device by walking over its weights
    return type("SharedModel", (SharedModel,), {**able, "_model": model, "device": getattr(model, "device", None)})


class Together(Capsules):
    """A loaded model for one request, which runs together with those of others."""

    def __init__(self, alone: Capsules, batcher: Batcher, ticket: Ticket, shared: type[SharedModel]) -> None:
        model: Any = shared(batcher, ticket)
        self.model, self.origin = model, alone.origin
        self.info, self.names, self.can = alone.info, alone.names, alone.can

    def pictures(self, given: Given) -> Float[Tensor, "n channels height width"]:
        """Brings pictures to the model; those that were brought to it already are left alone."""
        shape = (self.info.channels, self.info.size, self.info.size)
        if isinstance(given, Tensor) and given.dtype == torch.float32 and given.shape[1:] == shape:
            return given
        return super().pictures(given)

    def fitted(self, image: Image.Image) -> Float[Tensor, "1 channels height width"]:
        """Brings a picture that is plain already, upright and without transparency, to the model."""
        pixels = to_tensor(image, self.info.size, self.info.channels)
        return (pixels[None].float() / 255.0).to(self.model.device)
