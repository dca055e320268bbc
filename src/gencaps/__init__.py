"""gencaps: one model that analyses, generates and edits pictures, built from capsules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gencaps.api import Capsules, load
    from gencaps.errors import GencapsError

__all__ = ["Capsules", "GencapsError", "__version__", "load"]


def __getattr__(name: str) -> Any:
    # torch takes seconds to import: `gencaps --help` and `gencaps --version` must not wait for it
    if name in ("load", "Capsules"):
        from gencaps import api

        return getattr(api, name)
    if name == "GencapsError":
        from gencaps.errors import GencapsError

        return GencapsError
    raise AttributeError(f"module 'gencaps' has no attribute '{name}'")
