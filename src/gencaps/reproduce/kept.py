"""Measurements of single seeds, kept beside their runs: what was stopped or made elsewhere is not made again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gencaps.files import write_atomically
from gencaps.reproduce.subject import Measured

SAME = ("gencaps", "device", "torch", "commit")
"""What must be the same here for a measurement to count."""


class Kept(NamedTuple):
    """A measurement, and how long it took."""

    measured: Measured
    seconds: float


def keep(kept: Kept, folders: Sequence[Path], measure: str, here: dict[str, Any]) -> None:
    """Writes down a measurement of the models in folders."""
    path = _path(folders, measure)
    path.parent.mkdir(exist_ok=True)
    made = {**kept.measured._asdict(), "seconds": kept.seconds, **{name: here[name] for name in SAME}}
    write_atomically(path, json.dumps(made, indent=2) + "\n")


def recall(folders: Sequence[Path], measure: str, here: dict[str, Any]) -> Kept | None:
    """Gives what was measured before by the same code on the same kind of machine, unless a model was made since."""
    path = _path(folders, measure)
    if here["commit"].endswith("-dirty") or not path.exists():
        return None
    found = json.loads(path.read_text())
    weights = [folder / "model.safetensors" for folder in folders]
    made_since = any(not one.exists() or one.stat().st_mtime > path.stat().st_mtime for one in weights)
    if made_since or any(found[name] != here[name] for name in SAME):
        return None
    return Kept(Measured(found["values"], tuple(found["notes"])), found["seconds"])


def _path(folders: Sequence[Path], measure: str) -> Path:
    """Names the file; beside the first run's weights, after the measure and the other runs."""
    first, *others = folders
    return first / "measured" / f"{'-'.join([measure, *(folder.parent.name for folder in others)])}.json"
