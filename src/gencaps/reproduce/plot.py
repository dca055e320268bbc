"""Figures that draw what other claims were measured at: nothing is trained for them."""

from __future__ import annotations

import io
import statistics
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from gencaps.errors import GencapsError
from gencaps.reproduce.claims import Book, Claim
from gencaps.reproduce.results import Ours, read_result

Curves = dict[str, dict[float, Ours]]
"""What was measured, by curve and by x."""


def sources(claim: Claim, book: Book) -> list[Claim]:
    """Lists the claims whose results a plot draws."""
    return [book.claim(name) for points in claim.drawn.values() for name in points.values()]


def unmeasured(claim: Claim, book: Book, folder: Path, beside: Sequence[Claim] = ()) -> Claim | None:
    """Finds a claim that a plot draws and that was not measured yet, nor is beside it."""
    others = (source for source in sources(claim, book) if source not in beside)
    return next((source for source in others if read_result(folder, source) is None), None)


def read_points(claim: Claim, book: Book, folder: Path) -> Curves:
    """Reads the results that a plot draws."""
    return {
        curve: {x: _read(book.claim(name), folder) for x, name in points.items()}
        for curve, points in claim.drawn.items()
    }


def tried(claim: Claim) -> Curves:
    """Gives points that stand for a plot's, where only the path is tried."""
    return {curve: {x: Ours((0.25, 0.75)) for x in points} for curve, points in claim.drawn.items()}


def _read(source: Claim, folder: Path) -> Ours:
    found = read_result(folder, source)
    if found is None:
        raise GencapsError(f"'{source.id}' was not measured yet: run {source.command} first")
    return Ours(tuple(found["ours"]["values"]))


def draw(curves: Curves, x: str, y: str) -> Image.Image:
    """Draws each curve through the means, with bars of one standard deviation; shares go from 0 to 1."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3.5), dpi=110)
    for name, points in curves.items():
        places = sorted(points)
        means = [statistics.fmean(points[place].values) for place in places]
        bars = [points[place].sd or 0.0 for place in places]
        axes.errorbar(places, means, yerr=bars, marker="o", capsize=3, label=name)
    axes.set(xlabel=x, ylabel=y, ylim=(0, 1))
    axes.set_xticks(sorted({place for points in curves.values() for place in points}))
    axes.legend()
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    pyplot.close(figure)
    return Image.open(buffer).convert("RGB")
