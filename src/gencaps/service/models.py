"""Which models are served: those that come with the package, and those given at the start."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from gencaps.api import Capsules, load
from gencaps.engine.pretrained import WEIGHTS, shipped
from gencaps.errors import GencapsError

MOST_FOUND = 12
"""Runs that are served without having been asked for."""


def gather(given: Iterable[str] = (), device: str = "auto", runs: Path | None = None) -> dict[str, Capsules]:
    """Loads models and gives each an id: its name, or its folder's. Those asked for come first: the studio opens so.

    Args:
        given: run folders, model folders or hub ids.
        runs: a folder whose runs are served too; one that cannot be loaded is named and left out.
    """
    models: dict[str, Capsules] = {}
    given, along = list(given), shipped()
    known = {Path(name).resolve() for name in given}
    for name in given:
        id = name if name in along else _free(_id(name), {*models, *along})
        models[id] = load(along.get(name, name), device)
    models |= {name: load(folder, device) for name, folder in along.items() if name not in models}
    for folder in [] if runs is None else found(runs):
        if folder.resolve() in known:
            continue
        try:
            models[_free(_id(str(folder)), models)] = load(folder, device)
        except GencapsError as error:
            print(f"note: {folder} is not served: {error}", file=sys.stderr)
    return models


def found(runs: Path) -> list[Path]:
    """Lists the runs in a folder that have a model, the newest first, a dozen at most."""
    weights = [*runs.glob(f"*/{WEIGHTS}"), *runs.glob(f"*/*/{WEIGHTS}")]
    newest = sorted(weights, key=lambda file: -file.stat().st_mtime)
    return [file.parent for file in newest[:MOST_FOUND]]


def _id(name: str) -> str:
    """Makes an id of a folder's name, of letters, digits, - and _ alone."""
    return re.sub(r"[^a-z0-9_-]+", "-", Path(name).resolve().name.lower()).strip("-") or "model"


def _free(id: str, taken: Iterable[str]) -> str:
    names = [id, *(f"{id}-{k}" for k in range(2, len(list(taken)) + 3))]
    return next(name for name in names if name not in taken)
