"""Everything that can be trained: the papers' systems and their rivals, found by name and imported when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gencaps.baselines import RIVALS
from gencaps.errors import GencapsError, nearest
from gencaps.papers import PAPERS

SYSTEMS: dict[str, tuple[str, str]] = {**PAPERS, **RIVALS}
"""The classes of a system's model and settings, by the room's name."""


def check_system(name: str) -> None:
    """Refuses a name that no system has."""
    if name not in SYSTEMS:
        raise GencapsError(f"no paper and no rival is called '{name}'{nearest(name, SYSTEMS)}")


def model_type(name: str) -> type[Any]:
    """Finds the model of a system."""
    return _member(name, 0)


def config_type(name: str) -> type[Any]:
    """Finds the settings of a system."""
    return _member(name, 1)


def _member(name: str, place: int) -> Any:
    check_system(name)
    rooms = "papers" if name in PAPERS else "baselines"
    module, _, member = SYSTEMS[name][place].partition(".")
    return getattr(import_module(f"gencaps.{rooms}.{name}.{module}"), member)
