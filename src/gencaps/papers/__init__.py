"""One room a paper. A system is found here by its name, and imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gencaps.errors import GencapsError, nearest

# the class of a room's model and of its settings; each later paper adds one line. Settings know no torch,
# so that asking for help does not wait for it.
PAPERS: dict[str, tuple[str, str]] = {
    "variational": ("model.VariationalCapsules", "config.VariationalConfig"),
}


def model_type(paper: str) -> type[Any]:
    """Finds the model of a paper by the room's name."""
    return _member(paper, 0)


def config_type(paper: str) -> type[Any]:
    """Finds the settings of a paper by the room's name."""
    return _member(paper, 1)


def _member(paper: str, place: int) -> Any:
    if paper not in PAPERS:
        raise GencapsError(f"no paper is called '{paper}'{nearest(paper, PAPERS)}")
    module, _, name = PAPERS[paper][place].partition(".")
    return getattr(import_module(f"gencaps.papers.{paper}.{module}"), name)
