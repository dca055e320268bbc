"""Reads the curves out of the rows of metrics.jsonl."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

Row = Mapping[str, Any]

TOTALS = ("total", "loss")
"""Names of the sum of all terms."""
WHERE = frozenset({"epoch", "step"})
RATES = frozenset({"learning_rate", "lr", "wait_share", "seconds"})
FIGURES = frozenset({"images", "accuracy", "error_percent", "correct", "mse"})


class Series(NamedTuple):
    """One curve."""

    name: str
    points: list[tuple[float, float]]
    dashed: bool = False


class History(NamedTuple):
    """The curves of one chart."""

    series: list[Series]
    x_label: str
    marks: list[tuple[float, str]]
    """Where each stage begins, if there is more than one."""


def losses(rows: Sequence[Row]) -> History:
    """Collects the terms of the training loss, the total first; last, dashed, the validation total."""
    axis = "step" if any(_finite(r.get("step")) for r in rows if r.get("split") == "train") else "epoch"
    train, offsets = _timeline([r for r in rows if r.get("split") == "train"], axis)
    names = dict.fromkeys(k for _, r in train for k, v in r.items() if _is_loss(k, v))
    ordered = sorted(names, key=lambda name: name not in TOTALS)
    series = [Series(n, [(x, float(r[n])) for x, r in train if _finite(r.get(n))]) for n in ordered]

    # a validation row may know its epoch only: it stands at the last training row of that epoch
    ends = {(_stage(r), r.get("epoch")): x for x, r in train}
    valid: dict[float, float] = {}
    for r in rows:
        total = next((r[name] for name in TOTALS if _finite(r.get(name))), None)
        if r.get("split") == "valid" and total is not None:
            own = r.get(axis)
            end = ends.get((_stage(r), r.get("epoch")))
            x = float(own) + offsets.get(_stage(r), 0.0) if _finite(own) else end
            if x is not None:
                valid[x] = float(total)
    if valid and series:
        series.append(Series(f"{series[0].name}, validation", sorted(valid.items()), dashed=True))
    return History(series, axis, _marks(train))


def accuracy(rows: Sequence[Row]) -> History:
    """Collects the validation accuracy in percent, by epoch where rows know theirs."""
    valid = [r for r in rows if r.get("split") == "valid" and _finite(r.get("accuracy"))]
    axis = "epoch" if any(_finite(r.get("epoch")) for r in valid) else "step"
    line, _ = _timeline(valid, axis)
    points = [(x, 100 * float(r["accuracy"])) for x, r in line]
    return History([Series("accuracy", points)] if points else [], axis, _marks(line))


def _timeline(rows: Sequence[Row], axis: str) -> tuple[list[tuple[float, Row]], dict[str, float]]:
    """Puts rows in order, stage after stage; of rows written twice (by a resumed run) the last counts."""
    stages: dict[str, dict[float, Row]] = {}
    for row in rows:
        if _finite(row.get(axis)):
            stages.setdefault(_stage(row), {})[float(row[axis])] = row
    line: list[tuple[float, Row]] = []
    offsets: dict[str, float] = {}
    for stage, by_x in stages.items():
        end = line[-1][0] if line else -math.inf
        # a later stage may count from one again
        offsets[stage] = end if min(by_x) <= end else 0.0
        line += [(x + offsets[stage], by_x[x]) for x in sorted(by_x)]
    return line, offsets


def _marks(line: Sequence[tuple[float, Row]]) -> list[tuple[float, str]]:
    starts: dict[str, float] = {}
    for x, row in line:
        starts.setdefault(_stage(row), x)
    return [(x, stage) for stage, x in starts.items()] if len(starts) > 1 else []


def _stage(row: Row) -> str:
    return str(row.get("stage", ""))


def _is_loss(name: str, value: object) -> bool:
    return name not in WHERE | RATES | FIGURES and not name.endswith("_s") and _finite(value)


def _finite(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
