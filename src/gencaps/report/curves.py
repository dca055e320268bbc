"""Draws curves as inline SVG, by hand: no script, no library, nothing fetched."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from gencaps.report.history import History, Series

WIDTH, HEIGHT = 380, 236
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 24, 38
MOST_POINTS, MOST_BANDS = 300, 100
COLORS = 6
"""How many colours page.css names: ``--c0`` and so on."""


class Axis(NamedTuple):
    """Maps values to places on the page, in proportion or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Gives the place of a value."""
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Lists round values inside the range: decades on a log axis, else steps of 1, 2 or 5."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for parts in ((1,), (1, 3), (1, 2, 5)):
                found = [p * 10.0**d for d in decades for p in parts if self.low <= p * 10.0**d <= self.high]
                if len(found) >= 3:
                    return found[:: -(-len(found) // 6)]
        return _round_steps(self.low, self.high)


def chart(history: History, label: str, *, percent: bool = False) -> str:
    """Draws the curves with a legend, round ticks and a read-out that follows the pointer.

    The vertical axis is logarithmic where all values are positive and span over a factor of 50.

    Args:
        history: the curves.
        label: what the chart shows, for those who cannot see it.
        percent: whether the values are percentages, at most 100.
    """
    full = [s for s in history.series if s.points]
    if not full:
        return ""
    show: Callable[[float], str] = (lambda v: f"{v:.1f} %") if percent else short
    thin = [s._replace(points=_thinned(s.points)) for s in full]
    x, y = _axes(thin, percent)
    parts = [_frame(x, y, history, percent)]
    for i, s in enumerate(thin):
        kind = "line first" if i == 0 else "line dashed" if s.dashed else "line"
        style = f'class="{kind}" style="--c:{_color(i, s)}"'
        places = [(x.at(a), y.at(b)) for a, b in s.points]
        if len(places) > 1:
            parts.append(f'<path {style} d="M{"L".join(f"{a:.1f},{b:.1f}" for a, b in places)}"/>')
        if len(places) <= 12:
            parts += [
                f'<circle class="dot" style="--c:{_color(i, s)}" cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>' for a, b in places
            ]
    parts.append(_bands(thin, x, y, history.x_label, show))
    last = "; ".join(f"{s.name} ends at {show(s.points[-1][1])}" for s in full)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{label}: {last}.")}">'
        f"{''.join(parts)}</svg>{_legend(full, show)}</figure>"
    )


def short(value: float) -> str:
    """Writes a number in few characters: 12k, 4.10, 0.031."""
    size = abs(value)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (limit if unit != 'k' else 1e3):.3g}{unit}"
    if size >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 1e-3 else f"{value:.0e}".replace("e-0", "e-")


def _axes(series: Sequence[Series], percent: bool) -> tuple[Axis, Axis]:
    xs = [a for s in series for a, _ in s.points]
    ys = [b for s in series for _, b in s.points]
    log = not percent and min(ys) > 0 and max(ys) > 50 * min(ys)
    if log:
        margin = (max(ys) / min(ys)) ** 0.05
        low, high = min(ys) / margin, max(ys) * margin
    else:
        margin = 0.06 * (max(ys) - min(ys)) or 0.1 * abs(max(ys)) or 1.0
        low, high = min(ys) - margin, max(ys) + margin
        if percent:
            low, high = max(low, 0.0), min(high, 100.0)
        elif min(ys) >= 0 and min(ys) < 0.5 * max(ys):
            low = 0.0
    wide = (max(xs) - min(xs)) or 2.0
    left = min(xs) if max(xs) > min(xs) else min(xs) - 1
    return Axis(left, left + wide, LEFT, WIDTH - RIGHT), Axis(low, high, HEIGHT - BOTTOM, TOP, log)


def _frame(x: Axis, y: Axis, history: History, percent: bool) -> str:
    parts = []
    for value in y.ticks():
        at = f"{y.at(value):.1f}"
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        text = f"{value:.4g}%" if percent else short(value)
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{at}" dy=".35em" text-anchor="end">{text}</text>')
    for value in x.ticks():
        # steps and epochs are counted: half an epoch has no row
        if value == round(value):
            text = short(value) if value >= 1e4 else f"{value:,.0f}"
            place = f'x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle"'
            parts.append(f'<text class="tick" {place}>{text}</text>')
    for value, name in history.marks:
        at = f"{x.at(value):.1f}"
        parts.append(f'<line class="stage" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text class="tick" x="{at}" dx="4" y="{TOP + 10}">{escape(name)}</text>')
    middle, foot = (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4
    scale = " (vertical axis: logarithmic)" if y.log else ""
    parts.append(f'<text class="axis" x="{middle}" y="{foot}" text-anchor="middle">{history.x_label}{scale}</text>')
    return "".join(parts)


def _bands(series: Sequence[Series], x: Axis, y: Axis, x_label: str, show: Callable[[float], str]) -> str:
    """Draws invisible columns; the one under the pointer shows its line, its dots and its values."""
    xs = sorted({a for s in series for a, _ in s.points})
    xs = [xs[i * len(xs) // min(len(xs), MOST_BANDS)] for i in range(min(len(xs), MOST_BANDS))]
    places = [x.at(v) for v in xs]
    edges = [
        float(LEFT),
        *[(a + b) / 2 for a, b in pairwise(places)],
        float(WIDTH - RIGHT),
    ]
    colors = [_color(i, s) for i, s in enumerate(series)]
    parts = []
    for i, (value, place) in enumerate(zip(xs, places, strict=True)):
        near = [(k, s.name, *_nearest(s.points, value)) for k, s in enumerate(series)]
        texts = [f"{x_label} {value:,.0f}", *(f"{name} {show(b)}" for _, name, _, b in near)]
        dots = "".join(
            f'<circle style="--c:{colors[k]}" cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="3.2"/>' for k, _, a, b in near
        )
        # the legend names the colours: the read-out has room for the values alone
        values = "".join(f'<tspan dx="10" style="fill:{colors[k]}">{show(b)}</tspan>' for k, _, _, b in near[:6])
        size = f'x="{edges[i]:.1f}" width="{max(edges[i + 1] - edges[i], 0.1):.1f}" y="{TOP}"'
        parts.append(
            f'<g class="band"><title>{escape(", ".join(texts))}</title>'
            f'<rect {size} height="{HEIGHT - TOP - BOTTOM}"/>'
            f'<g><line x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>{dots}'
            f'<text x="{WIDTH - RIGHT}" y="14" text-anchor="end">{texts[0]}{values}</text></g></g>'
        )
    return "".join(parts)


def _legend(series: Sequence[Series], show: Callable[[float], str]) -> str:
    items = "".join(
        f'<li{" class=dashed" if s.dashed else ""} style="--c:{_color(i, s)}">{escape(s.name)} '
        f"<b>{show(s.points[-1][1])}</b></li>"
        for i, s in enumerate(series)
    )
    return f'<figcaption><ul class="legend">{items}</ul></figcaption>'


def _color(i: int, series: Series) -> str:
    # a dashed curve is the first one, measured on other pictures
    return f"var(--c{0 if series.dashed else i % COLORS})"


def _nearest(points: Sequence[tuple[float, float]], x: float) -> tuple[float, float]:
    i = bisect_left(points, (x, -math.inf))
    return min(points[max(i - 1, 0) : i + 1], key=lambda p: abs(p[0] - x))


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Averages neighbours until few enough points are left."""
    n = -(-len(points) // MOST_POINTS)
    groups = [points[i : i + n] for i in range(0, len(points), n)]
    return [(sum(a for a, _ in g) / len(g), sum(b for _, b in g) / len(g)) for g in groups]


def _round_steps(low: float, high: float) -> list[float]:
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, math.floor(high / step + 1e-9) + 1)]
