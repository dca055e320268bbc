"""A small book of claims, and what the tests of this room say often."""

from __future__ import annotations

from typing import Any

from gencaps.reproduce.claims import Book, Claim, read_book

RUN = """
[runs.tiny]
system = "resnet"
preset = "small"
data = "digits"
seeds = 2
settings = { "train.epochs" = 2, "model.width" = 4, "train.samples_every" = 0 }
"""


def entry(id: str, **fields: Any) -> str:
    """Spells one claim; a field that is ``None`` is left out."""
    shared = {
        "at": "our own",
        "about": f"What {id} says",
        "kind": "value",
        "data": "digits",
        "metric": "accuracy, %",
        "direction": "up",
        "runs": ["tiny"],
        "measure": "classification:accuracy_percent",
    }
    values = {"id": id, **shared, **fields}
    return "\n[[claims]]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in values.items() if v is not None)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def cited(id: str, **fields: Any) -> str:
    """Spells a claim of other authors."""
    return entry(id, **{"kind": "cited", "runs": None, "measure": None, "direction": None, "published": 1.0, **fields})


def small_book(*entries: str) -> Book:
    """Reads claims beside the tiny run."""
    return read_book({"small.toml": RUN + "".join(entries)})


def one(**fields: Any) -> Claim:
    """Makes one claim."""
    values: dict[str, Any] = {
        "id": "variational.test.one",
        "at": "our own",
        "about": "A test",
        "kind": "value",
        "data": "digits",
        "metric": "accuracy, %",
        "direction": "up",
        "runs": ("tiny",),
        "measure": "classification:accuracy_percent",
    }
    return Claim(**{**values, **fields})


FACTS: dict[str, Any] = {
    "seeds": 2,
    "device": "CPU",
    "torch": "2",
    "commit": "abc",
    "command": "gencaps reproduce run variational.test.one",
    "seconds": 1.5,
    "date": "2026-01-01 00:00 UTC",
}

KEYS = (
    *("claim", "kind", "paper", "metric", "published", "target", "direction", "against", "ours", "met", "state"),
    *("seeds", "device", "torch", "commit", "command", "seconds", "date"),
)
"""What a result holds for whoever reads it."""
