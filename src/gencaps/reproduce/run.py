"""Runs claims: trains what is missing, measures, and writes docs/results/CLAIM.json."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from gencaps.engine.devices import choose_device
from gencaps.engine.recipe import Recipe
from gencaps.engine.run import Run, environment
from gencaps.engine.train import Trained
from gencaps.errors import GencapsError, nearest
from gencaps.figures import save_picture
from gencaps.reproduce.claims import Book, Claim, TrainingRun
from gencaps.reproduce.hand import lacking
from gencaps.reproduce.judge import Judge, get_judge, judge_path, judge_recipe
from gencaps.reproduce.kept import Kept, keep, recall, spelled
from gencaps.reproduce.measures import FIGURES, MEASURES
from gencaps.reproduce.plot import draw, read_points, sources, tried, unmeasured
from gencaps.reproduce.results import path_of, picture_of, read_result, renew, rival_mean, row, write_result
from gencaps.reproduce.subject import Measured, Subject
from gencaps.reproduce.training import ensure_trained, recipe_of, training_seconds

OF_ATTRIBUTES = ("attributes", "edits")
"""Measures whose quantities are named after a set's attributes."""
RESULTS, RUNS = Path("docs/results"), Path("runs/reproduce")


@dataclass(frozen=True)
class Bench:
    """Where runs and results go, and how they are made."""

    book: Book
    runs: Path = RUNS
    results: Path = RESULTS
    judges: Path | None = None
    """Where judges are kept; ``None`` is the user's cache."""
    device: str = "auto"
    smoke: bool = False
    quiet: bool = False
    known: dict[Recipe, Judge] = field(default_factory=dict)
    """Judges that were loaded before."""

    def folder(self, run: TrainingRun, seed: int) -> Path:
        """Says where one seed of a run lies."""
        if run.judge:
            return judge_path(recipe_of(run, seed, smoke=self.smoke), self.judges)
        return self.runs / run.name / f"seed-{seed}"

    def train(self, run: TrainingRun, seed: int) -> Trained:
        """Gives one seed of a run, trained now where it is missing."""
        recipe = recipe_of(run, seed, smoke=self.smoke)
        return ensure_trained(recipe, self.folder(run, seed), device=self.device, quiet=self.quiet)

    def judge(self, run: Run) -> Judge:
        """Gives the judge of a run's data at its size."""
        recipe = judge_recipe(run.recipe.data, size=run.recipe.train.size, smoke=self.smoke)
        if recipe not in self.known:
            self.known[recipe] = get_judge(recipe, folder=self.judges, device=self.device, quiet=self.quiet)
        return self.known[recipe]


class Outcome(NamedTuple):
    """What came of one claim."""

    claim: Claim
    row: dict[str, Any]
    """As its JSON file holds it."""
    written: Path | None
    """``None`` in a smoke run."""


def run_claims(
    claims: Sequence[Claim], bench: Bench, *, seeds: int | None = None, say: Callable[[str], None] = print
) -> Iterator[Outcome]:
    """Measures claims; those of the same models and the same measure share one measurement."""
    refuse_all(claims, bench, seeds)
    for group in grouped([claim for claim in claims if claim.plot is None]):
        yield from _run_group(group, bench, seeds, say)
    for claim in claims:  # plots last: they draw what the others were just measured at
        if claim.plot is not None:
            say(f"drawing {claim.id}")
            yield _plot(claim, bench)


def refuse_all(claims: Sequence[Claim], bench: Bench, seeds: int | None = None) -> None:
    """Refuses what cannot be run here or written there, before anything is said or done."""
    choose_device(bench.device)
    for claim in claims:
        refuse(claim, bench, claims)
        _refuse_loss(claim, bench, seeds)
    if not bench.smoke:
        _refuse_folder(bench.results)


def refuse(claim: Claim, bench: Bench, beside: Sequence[Claim] = ()) -> None:
    """Refuses a claim that cannot be run here, before anything is trained.

    Args:
        beside: what is measured before a plot is drawn.
    """
    if claim.kind == "cited":
        raise GencapsError(f"'{claim.id}' is cited from other authors: there is nothing to run")
    missing = bench.book.missing(claim)
    if missing is not None:
        raise GencapsError(f"'{claim.id}' cannot be run: {missing}")
    if claim.plot is not None:
        absent = None if bench.smoke else unmeasured(claim, bench.book, bench.results, beside)
        if absent is not None:
            raise GencapsError(f"'{claim.id}' draws '{absent.id}', which was not measured yet: run {absent.command}")
        return
    of_figure = claim.measure_name == "figure"
    known: Any = FIGURES if of_figure else MEASURES
    wanted = claim.quantity if of_figure else claim.measure_name
    if wanted not in known:
        raise GencapsError(f"'{claim.id}' is measured by '{wanted}', which is not built yet{nearest(wanted, known)}")
    needed = None if bench.smoke else lacking(bench.book, claim)
    if needed is not None:
        raise GencapsError(f"'{claim.id}' needs data that is not here: {needed}")


def _refuse_folder(folder: Path) -> None:
    """Refuses a results' folder that cannot be written to, before hours are spent on what should go there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise GencapsError(f"results cannot go to {folder}: {error.strerror}; give another --results") from None


def runnable(claims: Sequence[Claim], bench: Bench) -> tuple[list[Claim], list[str]]:
    """Parts claims into those that can be run here and the reasons why others cannot."""
    able: list[Claim] = []
    reasons: list[str] = []
    for claim in sorted(claims, key=lambda claim: claim.plot is not None):  # a plot needs to know what else can be run
        try:
            refuse(claim, bench, able)
            able.append(claim)
        except GencapsError as error:
            reasons.append(str(error))
    return able, reasons


def _refuse_loss(claim: Claim, bench: Bench, seeds: int | None) -> None:
    """Refuses to put fewer seeds where more were measured."""
    if bench.smoke or seeds is None or claim.kind != "value":
        return
    found = read_result(bench.results, claim)
    if found is not None and len(found["ours"]["values"]) > seeds:
        raise GencapsError(
            f"{path_of(bench.results, claim)} holds {len(found['ours']['values'])} seeds and --seeds {seeds} would "
            "replace it: ask for as many, or give another --results"
        )


def seeds_of(claim: Claim, book: Book, seeds: int | None = None) -> int:
    """Gives how many models of each of its runs a claim needs; a figure is drawn from the first."""
    return 1 if claim.kind == "figure" else seeds or min(run.seeds for run in book.training(claim))


def grouped(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Puts claims of the same models and the same measure together."""
    key = lambda claim: (claim.runs, claim.measure_name, claim.kind)  # noqa: E731
    return [list(group) for _, group in groupby(sorted(claims, key=key), key)]


def _run_group(group: list[Claim], bench: Bench, seeds: int | None, say: Callable[[str], None]) -> Iterator[Outcome]:
    runs = bench.book.training(group[0])
    wanted = 1 if bench.smoke else seeds_of(group[0], bench.book, seeds)
    found: list[Measured] = []
    made: list[Run] = []
    seconds = 0.0
    subject = None
    for seed in range(wanted):
        say(f"{' and '.join(run.name for run in runs)}, seed {seed} ({seed + 1} of {wanted})")
        if group[0].kind == "value":
            measured, took = measure_seed(group[0], seed, bench, say)
            found.append(measured)
            seconds += took
        else:
            subject = Subject(tuple(bench.train(run, seed) for run in runs), seed, bench.judge, bench.smoke)
        made += [Run.open(bench.folder(run, seed)) for run in runs]
    seconds += sum(map(training_seconds, made))
    facts = {"seeds": wanted, **_machine(bench, made), "seconds": round(seconds, 1)}
    for claim in group:
        yield _finish(claim, bench, found, subject, facts, seeds)


def _plot(claim: Claim, bench: Bench) -> Outcome:
    """Draws other claims' results; in a smoke run points that stand for them."""
    plot = claim.plot or {}
    curves = tried(claim) if bench.smoke else read_points(claim, bench.book, bench.results)
    picture = draw(curves, plot["x"], plot["y"])
    here = environment(choose_device(bench.device))
    facts: dict[str, Any] = {name: here[name] for name in ("device", "torch", "commit", "date")}
    facts |= {"command": claim.command, "notes": [f"`{claim.id}` is drawn from the results of other claims"]}
    if bench.smoke:
        return Outcome(claim, row(claim, [], facts), None)
    facts["picture"] = save_picture(picture, picture_of(bench.results, claim)).name
    path = write_result(bench.results, claim, [], facts, None)
    return Outcome(claim, row(claim, [], facts), path)


def measure_seed(claim: Claim, seed: int, bench: Bench, say: Callable[[str], None]) -> Kept:
    """Measures one seed of a claim's models and keeps it; what was kept before is taken."""
    runs, here = bench.book.training(claim), environment(choose_device(bench.device))
    folders = [bench.folder(run, seed) for run in runs]
    before = None if bench.smoke else recall(folders, claim.measure_name, here)
    if before is not None:
        say(f"{claim.measure_name} was measured before")
        return before
    subject = Subject(tuple(bench.train(run, seed) for run in runs), seed, bench.judge, bench.smoke)
    say(f"measuring {claim.measure_name}")
    started_s = time.perf_counter()
    kept = Kept(MEASURES[claim.measure_name](subject), time.perf_counter() - started_s)
    text = spelled(kept, folders, here)  # in a smoke run too: what cannot be spelled is found before hours are spent
    if not bench.smoke:
        keep(text, folders, claim.measure_name)
    return kept


def _finish(
    claim: Claim,
    bench: Bench,
    found: list[Measured],
    subject: Subject | None,
    facts: dict[str, Any],
    seeds: int | None,
) -> Outcome:
    quantity = claim.quantity
    command = f"{claim.command} --seeds {seeds}" if seeds and claim.kind == "value" else claim.command
    facts = {**facts, "command": command}
    notes: set[str] = set(facts.pop("notes"))
    values: list[float] = []
    if subject is not None:
        picture = FIGURES[quantity](subject)
        if not bench.smoke:
            # people's faces are never shown in the documents
            folder = bench.runs if "celeba" in claim.data else bench.results
            facts["picture"] = save_picture(picture, picture_of(folder, claim)).name
    else:
        if bench.smoke and claim.measure_name in OF_ATTRIBUTES and quantity not in found[0].values:
            quantity = next(iter(found[0].values))  # the stand-in faces have other attributes
        values = [pick(one, quantity, claim) for one in found]
        notes |= {note for one in found for note in one.notes}
    facts |= {"notes": sorted(notes)} if notes else {}
    rival = rival_mean(bench.book, claim, bench.results)
    if bench.smoke:
        return Outcome(claim, row(claim, values, facts, rival), None)
    path = write_result(bench.results, claim, values, facts, rival)
    for other in bench.book.claims.values():
        if other.against == claim.id:
            renew(bench.book, other, bench.results)
        drawn = claim in sources(other, bench.book) and path_of(bench.results, other).exists()
        if drawn and unmeasured(other, bench.book, bench.results) is None:
            _plot(other, bench)
    return Outcome(claim, row(claim, values, facts, rival), path)


def pick(measured: Measured, quantity: str, claim: Claim) -> float:
    """Takes a quantity out of a measurement."""
    if quantity not in measured.values:
        raise GencapsError(f"'{claim.id}': {claim.measure} gives no '{quantity}'{nearest(quantity, measured.values)}")
    value = float(measured.values[quantity])
    if not math.isfinite(value):
        raise GencapsError(f"'{claim.id}': {claim.measure} came out as {value}, which is no figure to report")
    return value


def _machine(bench: Bench, runs: Sequence[Run]) -> dict[str, Any]:
    """Says where models were trained, and where they were measured if that is another machine or commit."""
    here = environment(choose_device(bench.device))
    told = ("device", "torch", "commit")
    made = [{name: run.facts().get("environment", here)[name] for name in told} for run in runs]
    where = "on {device} with torch {torch}, commit {commit}"
    notes = {f"some of the models were trained {where.format(**each)}" for each in made if each != made[0]}
    if any(each[name] != here[name] for each in made for name in told):
        notes.add(f"measured {where.format(**here)}")
    return {**made[0], "date": here["date"], "notes": notes}
