"""Measurements of single seeds, kept beside their runs: what was stopped or made elsewhere is not made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gencaps.engine.pretrained import WEIGHTS
from gencaps.files import write_atomically
from gencaps.reproduce.subject import Measured

SAME = ("gencaps", "device", "torch", "commit")
"""What must be the same here for a measurement to count."""


class Kept(NamedTuple):
    """A measurement, and how long it took."""

    measured: Measured
    seconds: float


def known(here: dict[str, Any]) -> bool:
    """Tells whether it is known which code measures here: what is not committed may be other code the next time."""
    return not here["commit"].endswith("-dirty") and here["commit"] != "unknown"


def spelled(kept: Kept, folders: Sequence[Path], here: dict[str, Any]) -> str:
    """Spells a measurement of the models in folders, with all that it depends on."""
    made = {**kept.measured._asdict(), "seconds": kept.seconds, "weights": _weights(folders)}
    return json.dumps({**made, **{name: here[name] for name in SAME}}, indent=2) + "\n"


def keep(text: str, folders: Sequence[Path], measure: str) -> None:
    """Writes a measurement down."""
    path = _path(folders, measure)
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, text)


def recall(folders: Sequence[Path], measure: str, here: dict[str, Any]) -> Kept | None:
    """Gives what was measured before of the same weights, by the same code, on the same kind of machine."""
    path = _path(folders, measure)
    if not known(here) or not path.exists() or not all((folder / WEIGHTS).exists() for folder in folders):
        return None
    found = json.loads(path.read_text())
    if found["weights"] != _weights(folders) or any(found[name] != here[name] for name in SAME):
        return None
    return Kept(Measured(found["values"], tuple(found["notes"])), found["seconds"])


def _weights(folders: Sequence[Path]) -> list[str]:
    return [hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest() for folder in folders]


def _path(folders: Sequence[Path], measure: str) -> Path:
    """Names the file; beside the first run's weights, after the measure and the other runs."""
    first, *others = folders
    return first / "measured" / f"{'-'.join([measure, *(folder.parent.name for folder in others)])}.json"
