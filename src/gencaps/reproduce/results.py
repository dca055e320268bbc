"""Results: what was measured for a claim, as docs/results/CLAIM.json holds it."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gencaps.errors import GencapsError
from gencaps.files import write_atomically
from gencaps.reproduce.claims import Book, Claim

State = Literal["met", "missed", "not run", "needs data", "cited"]
MEASURED = ("seeds", "device", "torch", "commit", "command", "seconds", "date")
"""Fields that only a run can fill."""
FIELDS = ("claim", "kind", "paper", "metric", "published", "target", "direction", "against", "ours", "met", "state")


@dataclass(frozen=True)
class Ours:
    """What we measured: one value a seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """Their mean; ``None`` for a picture."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """Their sample standard deviation; ``None`` for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def plain(self) -> dict[str, Any]:
        """Gives it as JSON holds it."""
        return {"mean": self.mean, "sd": self.sd, "values": list(self.values)}


def judge(claim: Claim, mean: float | None, rival: float | None) -> bool | None:
    """Says whether a figure is reached: our own target and the rival where there are, else the published value.

    ``None`` where there is nothing to compare with, or the rival was not measured.
    """
    if mean is None:
        return None
    if claim.against is not None and rival is None:
        return None
    bars: list[Any] = [claim.target] if claim.target is not None else []
    bars += [rival] if claim.against is not None else []
    bars = bars or ([claim.published] if claim.published is not None else [])
    return all(_reaches(mean, bar, claim) for bar in bars) if bars else None


def _reaches(mean: float, bar: float | tuple[float, float], claim: Claim) -> bool:
    if isinstance(bar, tuple):
        return bar[0] <= mean <= bar[1]
    if claim.strict and mean == bar:
        return False
    return mean <= bar if claim.direction == "down" else mean >= bar


def path_of(folder: Path, claim: Claim) -> Path:
    """Names the file of a claim's result."""
    return folder / f"{claim.id}.json"


def picture_of(folder: Path, claim: Claim) -> Path:
    """Names the file of a figure's picture."""
    return folder / f"{claim.id}.png"


def read_result(folder: Path, claim: Claim) -> dict[str, Any] | None:
    """Reads what was measured for a claim; ``None`` where it was not run. A file of another schema is refused."""
    path = path_of(folder, claim)
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise GencapsError(f"{path} cannot be read ({error!s:.80}): delete it and run {claim.command} again") from None
    fault = _fault(found, claim)
    if fault:
        raise GencapsError(f"{path} is not a result of this version: {fault}; move it away and run {claim.command}")
    return found


def _fault(found: Any, claim: Claim) -> str | None:
    if not isinstance(found, dict):
        return "it holds no object"
    lacking = [name for name in (*FIELDS, *MEASURED) if name not in found]
    if lacking:
        return f"it lacks '{lacking[0]}'"
    if found["claim"] != claim.id or found["kind"] != claim.kind:
        return f"it is of the claim '{found['claim']}', kind '{found['kind']}'"
    ours = found["ours"]
    if not isinstance(ours, dict) or not isinstance(ours.get("values"), list):
        return "its 'ours' has no list of values"
    if claim.kind == "value" and not ours["values"]:
        return "it has no values"
    # a whole number may be longer than a float can be
    numbers = all(type(value) in (int, float) and abs(value) <= sys.float_info.max for value in ours["values"])
    return None if numbers else "its values are not all finite numbers"


def write_result(
    folder: Path, claim: Claim, values: Sequence[float], facts: dict[str, Any], rival: float | None
) -> Path:
    """Writes a claim's result, whole or not at all."""
    path = path_of(folder, claim)
    write_atomically(path, json.dumps(row(claim, values, facts, rival), indent=2) + "\n")
    return path


def row(
    claim: Claim, values: Sequence[float] | None, facts: dict[str, Any] | None = None, rival: float | None = None
) -> dict[str, Any]:
    """Gives a claim with its result as one JSON object; ``ours`` is null where it was not run."""
    ours = None if values is None else Ours(tuple(values))
    met = None if ours is None else judge(claim, ours.mean, rival)
    target = list(claim.target) if isinstance(claim.target, tuple) else claim.target
    found: dict[str, Any] = {
        "claim": claim.id,
        "kind": claim.kind,
        "paper": claim.paper,
        "at": claim.at,
        "about": claim.about,
        "data": claim.data,
        "metric": claim.metric,
        "published": claim.published,
        "published_sd": claim.published_sd,
        "target": target,
        "direction": claim.direction,
        "against": claim.against,
        "ours": None if ours is None else ours.plain(),
        "met": met,
        "state": state_of(claim, ours, met),
        **dict.fromkeys(MEASURED),
        "command": claim.command,
    }
    return {**found, **(facts or {})}


def state_of(claim: Claim, ours: Ours | None, met: bool | None) -> State:
    """Says how a claim stands, but for data that is not at hand.

    A picture that was made, and a figure that others are compared with and that has no bar of its own, is met. One
    whose rival was not measured counts as not run: half of the comparison is missing.
    """
    if claim.kind == "cited":
        return "cited"
    if ours is None or (met is None and claim.against is not None):
        return "not run"
    return "missed" if met is False else "met"


def rows(
    book: Book, claims: Sequence[Claim], folder: Path, needs: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Lists claims with what was measured for each; verdicts follow the claims as they stand today.

    Args:
        needs: what to fetch, by claim, where its data is not at hand.
    """
    listed = []
    for claim in claims:
        found = None if claim.kind == "cited" else read_result(folder, claim)
        facts = None if found is None else {k: v for k, v in found.items() if k in (*MEASURED, "notes", "picture")}
        values = None if found is None else found["ours"]["values"]
        one = row(claim, values, facts, rival_mean(book, claim, folder))
        if values is None and needs and claim.id in needs:
            one |= {"state": "needs data", "needs": needs[claim.id]}
        listed.append(one)
    return listed


def renew(book: Book, claim: Claim, folder: Path) -> None:
    """Writes a claim's result again with today's verdict, after the rival that it is against was measured."""
    if read_result(folder, claim) is not None:
        write_atomically(path_of(folder, claim), json.dumps(rows(book, [claim], folder)[0], indent=2) + "\n")


def rival_mean(book: Book, claim: Claim, folder: Path) -> float | None:
    """Gives the mean of the claim that a claim is against, where it was measured."""
    if claim.against is None:
        return None
    found = read_result(folder, book.claim(claim.against))
    return None if found is None else Ours(tuple(found["ours"]["values"])).mean
