"""Checkpoints: the state of a run that continues as if it had never stopped."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import torch

from gencaps import __version__
from gencaps.engine.run import resume_command
from gencaps.errors import GencapsError
from gencaps.files import write_atomically

FORMAT = 1
"""Rises when an older gencaps could not read what a newer one writes."""
STATE, PREVIOUS = "state.pt", "state.previous.pt"


def save_state(folder: Path, state: dict[str, Any]) -> None:
    """Writes a checkpoint beside the last one, which is kept until this one is whole on disk."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "gencaps": __version__, **state}, buffer)
    new = folder / f"{STATE}.new"
    try:
        write_atomically(new, buffer.getvalue())
    except GencapsError as error:
        kept = "the checkpoint before it is kept: " if (folder / STATE).exists() else ""
        raise GencapsError(f"{error} ({kept}then {resume_command(folder)})") from None
    if (folder / STATE).exists():
        (folder / STATE).replace(folder / PREVIOUS)
    new.replace(folder / STATE)


def load_state(folder: Path) -> dict[str, Any] | None:
    """Reads the newest whole checkpoint; a damaged one is named and the one before it is taken.

    Gives ``None`` where the run was stopped before its first checkpoint.
    """
    damaged: list[str] = []
    # a kill between the two renames of save_state leaves the newest one under its first name
    for name in (f"{STATE}.new", STATE, PREVIOUS):
        path = folder / name
        if not path.exists():
            continue
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds for a damaged file
            damaged.append(f"{path} is damaged ({str(error).splitlines()[0][:80]})")
            continue
        if not isinstance(state, dict) or type(state.get("format")) is not int:
            raise GencapsError(f"{path} is not a checkpoint of gencaps: put back the one that was there, or delete it")
        if state["format"] > FORMAT:
            raise GencapsError(
                f"{path} was written by gencaps {state.get('gencaps')} (format {state['format']}); "
                f"this is {__version__}, which reads up to format {FORMAT}: upgrade gencaps"
            )
        if damaged:
            print(f"{'; '.join(damaged)}: taking {path} instead", file=sys.stderr)
        return state
    if damaged:
        raise GencapsError(f"{'; '.join(damaged)} and there is no other: start a new run")
    return None
