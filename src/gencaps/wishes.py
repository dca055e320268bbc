"""What a user wishes to see, as states of a model's groups: ``Eyeglasses=1,Smiling=0``, or the name of a class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gencaps.errors import GencapsError, nearest
from gencaps.model import PictureInfo

ON, OFF = ("1", "on", "yes", "true"), ("0", "off", "no", "false")
Wishes = str | int | Mapping[str, Any] | Iterable[str]
"""``"Eyeglasses=1,Smiling=0"``, a list of such or ``{"Eyeglasses": 1, "Smiling": False}``; of a model with classes a
class by name or index."""


def read_wishes(given: Wishes, info: PictureInfo) -> dict[int, int]:
    """Reads the wished state of each group that is named; unknown names and contradictions are refused."""
    if info.labels == "classes":
        return {0: _class(given, info)}
    if isinstance(given, Mapping):
        pairs = [(str(name), value) for name, value in given.items()]
    elif isinstance(given, str | Iterable):
        pairs = _pairs(given if isinstance(given, str) else ",".join(map(str, given)))
    else:
        raise GencapsError(f"{given!r} names no attributes: write {info.names[0]}=1")
    if not pairs:
        raise GencapsError("nothing was asked for: name attributes, such as " + f"{info.names[0]}=1")
    found: dict[int, int] = {}
    for name, value in pairs:
        group, state = group_of(name, info), _state(name, value)
        if found.get(group, state) != state:
            raise GencapsError(f"{info.names[group]} is asked to be both on and off: say it once")
        found[group] = state
    return found


def _class(given: Wishes, info: PictureInfo) -> int:
    if isinstance(given, Integral) and not isinstance(given, bool) and 0 <= int(given) < len(info.names):
        return int(given)
    if isinstance(given, Mapping):
        given = given["class"] if set(given) == {"class"} else ",".join(f"{k}={v}" for k, v in given.items())
    name = str(given).strip()
    if name in info.names:
        return info.names.index(name)
    kind = " (it has no attributes)" if "=" in name else ""
    raise GencapsError(f"this model knows no class '{' '.join(name.split())}'{kind}{nearest(name, info.names)}")


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = part.partition("=")
        if not sign:
            raise GencapsError(f"'{part}' says neither on nor off: write {part}=1 or {part}=0")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _state(name: str, value: Any) -> int:
    number = isinstance(value, Real) and value in (0, 1)
    word = str(int(bool(value)) if number else value).strip().lower()
    if word in ON:
        return 1
    if word in OFF:
        return 0
    raise GencapsError(f"{name}={value} is neither on nor off: give 1 or 0")


def group_of(name: str, info: PictureInfo) -> int:
    """Finds an attribute by its name, whatever the case and with blanks for underscores."""
    if info.labels == "classes":
        raise GencapsError(f"this model has classes, no attributes such as '{name}'")
    plain = {_plain(known): place for place, known in reversed(list(enumerate(info.names)))}
    if _plain(name) not in plain:
        close = get_close_matches(_plain(name), plain, n=1)
        meant = info.names[plain[close[0]]] if close else name  # case does not matter here either
        raise GencapsError(f"this model knows no attribute '{' '.join(name.split())}'{nearest(meant, info.names)}")
    return plain[_plain(name)]


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def as_states(wishes: Mapping[int, int], groups: int, n: int, device: torch.device) -> Int[Tensor, "n groups"]:
    """Lays wishes out for n pictures; -1 where nothing is wished."""
    states = torch.full((groups,), -1, device=device)
    for group, state in wishes.items():
        states[group] = state
    return states.expand(n, groups)


def marked(only: str | Iterable[str], info: PictureInfo, n: int, device: torch.device) -> Bool[Tensor, "n groups"]:
    """Marks the attributes that are named, for n pictures."""
    if not isinstance(only, str | Iterable):
        raise GencapsError(f"{only!r} names no attributes: write {info.names[0]}")
    names = [part for part in only.split(",") if part.strip()] if isinstance(only, str) else list(map(str, only))
    if not names:
        raise GencapsError("no attribute was named: leave the choice out, or name some")
    mask = torch.zeros(len(info.names), dtype=torch.bool, device=device)
    for name in names:
        mask[group_of(name, info)] = True
    return mask.expand(n, len(info.names))


def read_dials(given: str | Mapping[str, float | int], names: Sequence[str], dim: int) -> dict[tuple[int, int], float]:
    """Reads which numbers of which capsules are set: ``7.0=1.5`` is number 0 of the capsule named 7."""
    pairs = list(given.items()) if isinstance(given, Mapping) else [p.partition("=")[::2] for p in given.split(",")]
    found: dict[tuple[int, int], float] = {}
    for word, value in pairs:
        name, _, place = str(word).strip().rpartition(".")
        if name not in names:
            raise GencapsError(f"'{word}' names no number of a capsule: write {names[0]}.0=1{nearest(name, names)}")
        if not place.isdecimal() or int(place) >= dim:
            raise GencapsError(f"'{word}' names no number of a capsule: those of '{name}' are 0 to {dim - 1}")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise GencapsError(f"'{word}={value}' sets no number: write {name}.{place}=1.5")
        found[names.index(name), int(place)] = number
    return found
