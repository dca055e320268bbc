"""Plots of other claims' results: what they read, what they refuse, and what they draw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import ImageChops

from gencaps.reproduce import run as run_module
from gencaps.reproduce.claims import Book, Claim
from gencaps.reproduce.plot import draw, read_points
from gencaps.reproduce.results import MEASURED, Ours, write_result
from gencaps.reproduce.run import Bench, Outcome, _finish, run_claims, runnable
from gencaps.reproduce.subject import Measured
from tests.helpers import refused
from tests.reproduce.helpers import entry, small_book

FACTS: dict[str, Any] = dict.fromkeys(MEASURED)


def plot(points: str = '"0" = "variational.a", "90" = "variational.b"', **fields: object) -> str:
    """Spells a plot of one curve."""
    bare: dict[str, object] = {"kind": "figure", "runs": None, "measure": None, "direction": None, **fields}
    return (
        entry("variational.drawn", **bare)
        + f'[claims.plot]\nx = "angle"\ny = "share"\n[claims.plot.curves]\n"one" = {{ {points} }}\n'
    )


@pytest.fixture
def known() -> Book:
    return small_book(plot(), entry("variational.a"), entry("variational.b"))


def bench(known: Book, folder: Path, smoke: bool = False) -> Bench:
    return Bench(known, folder / "runs", folder / "results", folder / "judges", "cpu", smoke=smoke, quiet=True)


def test_a_plot_draws_what_was_measured_and_trains_nothing(
    known: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "ensure_trained", None)  # any training would fail
    results = tmp_path / "results"
    results.mkdir()
    for name, values in (("a", (0.5, 0.7)), ("b", (0.25,))):
        write_result(results, known.claim(f"variational.{name}"), values, FACTS, None)
    drawn = known.claim("variational.drawn")
    points = read_points(drawn, known, results)
    assert points == {"one": {0.0: Ours((0.5, 0.7)), 90.0: Ours((0.25,))}}
    (outcome,) = run_claims([drawn], bench(known, tmp_path), say=lambda _: None)
    assert outcome.row["state"] == "met"
    assert (results / outcome.row["picture"]).exists()


def test_a_plot_of_what_was_not_measured_is_refused_before_anything_is_done(known: Book, tmp_path: Path) -> None:
    drawn = known.claim("variational.drawn")
    refused(lambda: list(run_claims([drawn], bench(known, tmp_path))), "'variational.a'", "not measured yet", "run")
    (outcome,) = run_claims([drawn], bench(known, tmp_path, smoke=True), say=lambda _: None)
    assert outcome.written is None
    assert not (tmp_path / "results").exists()


def test_a_plot_is_drawn_after_what_it_shows_and_again_when_that_is_measured_anew(
    known: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = bench(known, tmp_path)
    drawn, *others = known.claims.values()
    value = 0.2

    def measured(group: list[Claim], bench: Bench, seeds: object, say: object) -> Iterator[Outcome]:
        found = [Measured({"accuracy_percent": value})]
        yield from (_finish(claim, bench, found, None, {**FACTS, "notes": ()}, None) for claim in group)

    monkeypatch.setattr(run_module, "_run_group", measured)
    said: list[str] = []
    # the plot comes first, and is drawn last: nothing was measured before
    made = [outcome.claim for outcome in run_claims([drawn, *others], place, say=said.append)]
    assert made == [*others, drawn]
    assert said == ["drawing variational.drawn"]
    before = (place.results / "variational.drawn.png").read_bytes()
    value = 0.8
    list(run_claims([others[0]], place, say=said.append))
    assert (place.results / "variational.drawn.png").read_bytes() != before
    (place.results / "variational.b.json").unlink()  # a plot that cannot be drawn again stops no measurement
    (again,) = run_claims([others[0]], place, say=said.append)
    assert again.row["ours"]["values"] == [0.8]
    able, reasons = runnable([drawn, *others], bench(known, tmp_path / "empty"))
    assert (able, reasons) == ([*others, drawn], [])
    able, reasons = runnable([drawn], bench(known, tmp_path / "empty"))
    assert not able
    assert "not measured yet" in reasons[0]


def test_what_is_measured_moves_the_curve() -> None:
    one, same, other = (draw({"a": {0.0: Ours((v,)), 90.0: Ours((0.5,))}}, "x", "y") for v in (0.9, 0.9, 0.2))
    assert ImageChops.difference(one, same).getbbox() is None
    assert ImageChops.difference(one, other).getbbox() is not None


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (plot('"0" = "variational.aa"'), ["'variational.aa'", "did you mean 'variational.a'"]),
        (plot('"north" = "variational.a"'), ["no number", "north"]),
        (plot('"0" = "variational.drawn"'), ["no value"]),
        (plot(runs=["tiny"]), ["without run or measure"]),
        (plot(kind="value", direction="up"), ["without run or measure"]),
        (plot().replace('x = "angle"', 'z = "angle"'), ["just x, y and curves"]),
        (plot().partition("[claims.plot.curves]")[0] + "curves = 3\n", ["no tables"]),
        (plot().partition('"one"')[0] + '"one" = "variational.a"\n', ["no tables"]),
        (plot('"0" = 3'), ["'3'", "nowhere"]),
    ],
)
def test_a_plot_that_cannot_be_drawn_is_refused_by_name(bad: str, words: list[str]) -> None:
    refused(lambda: small_book(bad, entry("variational.a"), entry("variational.b")), "'variational.drawn'", *words)
