"""Which models are served: those that come with the package, and those given at the start."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gencaps.api import Capsules, load
from gencaps.engine.pretrained import shipped


def gather(given: Iterable[str] = (), device: str = "auto") -> dict[str, Capsules]:
    """Loads models and gives each an id: its name, or its folder's."""
    models = {name: load(folder, device) for name, folder in shipped().items()}
    for name in given:
        if name not in shipped():
            models[_free(_id(name), models)] = load(name, device)
    return models


def _id(name: str) -> str:
    """Makes an id of a folder's name, of letters, digits, - and _ alone."""
    return re.sub(r"[^a-z0-9_-]+", "-", Path(name).resolve().name.lower()).strip("-") or "model"


def _free(id: str, taken: Iterable[str]) -> str:
    names = [id, *(f"{id}-{k}" for k in range(2, len(list(taken)) + 3))]
    return next(name for name in names if name not in taken)
