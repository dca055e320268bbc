"""Claims: every number and picture of the papers, and the figures that we set ourselves, read from claims/*.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

from gencaps.engine.recipe import presets
from gencaps.errors import GencapsError, nearest
from gencaps.systems import SYSTEMS

Kind = Literal["value", "figure", "cited"]
Direction = Literal["up", "down", "within"]
ROOMS = ("variational", "capsule_gan", "probabilistic", "product_of_experts")
"""The papers, by the names of their rooms: an id begins with one."""
DEALT = ("published", "published_sd", "target", "against", "measure", "direction")
"""Fields of a table that may be lists, one entry a column."""


@dataclass(frozen=True)
class TrainingRun:
    """A training run behind claims: one model for each seed."""

    name: str
    system: str
    """A room of gencaps.papers or a rival."""
    preset: str
    data: str
    seeds: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings on top of the preset, such as ``{"model.recon_weight": 0.0}``."""
    judge: bool = False
    """Whether its models judge others: then they lie in the judges' cache."""

    @property
    def missing(self) -> str | None:
        """Says what of it is not built yet; ``None`` where it can be trained."""
        if self.system not in SYSTEMS:
            return f"the system {self.system} is not built yet"
        if self.preset not in presets(self.system):
            return f"{self.system} has no preset '{self.preset}' yet"
        return None


@dataclass(frozen=True)
class Claim:
    """One number or one picture, where it stands, and what measures it."""

    id: str
    at: str
    """Table and row, section or figure; "our own" for figures that the paper lacks."""
    about: str
    """One plain line for people."""
    kind: Kind
    data: str
    metric: str
    published: float | None = None
    published_sd: float | None = None
    target: float | tuple[float, float] | None = None
    """The figure that we set ourselves; a range where the direction is ``within``."""
    direction: Direction | None = None
    against: str | None = None
    """The claim whose figure ours must be at least as good as."""
    strict: bool = False
    """Whether equal to the bar is not enough."""
    runs: tuple[str, ...] = ()
    measure: str | None = None
    """MEASURE:QUANTITY."""
    plot: Mapping[str, Any] | None = None
    """Of a figure that draws other claims' results: ``x`` and ``y`` say what is drawn, ``curves`` holds, by the name of
    a curve and by x, the claim whose result stands there."""
    pictures: int | None = None
    """The number of training pictures that the data set must have."""
    needs: str | None = None
    """What to fetch where it has not."""

    @property
    def paper(self) -> str:
        """The room that it belongs to."""
        return self.id.partition(".")[0]

    @property
    def measure_name(self) -> str:
        """The first half of ``measure``; empty where there is none."""
        return (self.measure or "").partition(":")[0]

    @property
    def quantity(self) -> str:
        """The second half."""
        return (self.measure or "").partition(":")[2]

    @property
    def drawn(self) -> dict[str, dict[float, str]]:
        """The claims that a plot draws, by curve and by x."""
        curves = self.plot["curves"] if self.plot else {}
        return {curve: {float(x): str(name) for x, name in points.items()} for curve, points in curves.items()}

    @property
    def command(self) -> str | None:
        """The command that measures it."""
        return None if self.kind == "cited" else f"gencaps reproduce run {self.id}"


@dataclass(frozen=True)
class Book:
    """All claims and the runs behind them, by name."""

    claims: dict[str, Claim]
    runs: dict[str, TrainingRun]

    def claim(self, name: str) -> Claim:
        """Finds a claim by its id."""
        if name not in self.claims:
            near = nearest(name.lower(), [*self.claims, *ROOMS])
            offer = near if "did you mean" in near else f" (papers: {', '.join(ROOMS)})"
            raise GencapsError(f"there is no claim '{name}'{offer}; gencaps reproduce list shows all")
        return self.claims[name]

    def matching(self, patterns: Iterable[str]) -> list[Claim]:
        """Finds claims, each once, in the book's order.

        By id, by what an id begins with (``variational.mnist``), or by pattern (``*.judge.*``).
        """
        chosen: set[str] = set()
        for pattern in patterns:
            inside = f"{pattern.rstrip('.')}."
            found = {name for name in self.claims if fnmatchcase(name, pattern) or name.startswith(inside)}
            chosen |= found or {self.claim(pattern).id}
        return [claim for claim in self.claims.values() if claim.id in chosen]

    def training(self, claim: Claim) -> list[TrainingRun]:
        """Lists the runs that a claim needs."""
        return [self.runs[name] for name in claim.runs]

    def missing(self, claim: Claim) -> str | None:
        """Says what a claim waits for that is not built yet."""
        return next((run.missing for run in self.training(claim) if run.missing), None)


@cache
def book() -> Book:
    """Reads the claims that come with the package."""
    folder = resources.files("gencaps.reproduce") / "claims"
    texts = {f.name: f.read_text() for f in sorted(folder.iterdir(), key=lambda f: f.name) if f.name.endswith(".toml")}
    return read_book(texts)


def read_book(texts: Mapping[str, str]) -> Book:
    """Reads claim files, by name; what is wrong in one is refused with the file and the claim."""
    claims: dict[str, Claim] = {}
    runs: dict[str, TrainingRun] = {}
    for file, text in texts.items():
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise GencapsError(f"{file} is not valid TOML: {error}") from None
        for name, run in values.get("runs", {}).items():
            if name in runs:
                raise GencapsError(f"{file}: the run '{name}' is there twice")
            runs[name] = _make(TrainingRun, {"name": name, **run}, f"{file}: the run '{name}'")
        cells = [cell for table in values.get("tables", []) for cell in expand(table, file)]
        for entry in [*values.get("claims", []), *cells]:
            claim = _make(Claim, {**entry, "runs": tuple(entry.get("runs", ()))}, f"{file}: '{entry.get('id')}'")
            if claim.id in claims:
                raise GencapsError(f"{file}: the claim '{claim.id}' is there twice")
            claims[claim.id] = claim
    found = Book(claims, runs)
    for claim in claims.values():
        fault = _fault(claim, found)
        if fault:
            raise GencapsError(f"the claim '{claim.id}' {fault}")
    return found


def expand(table: Mapping[str, Any], file: str = "") -> Iterator[dict[str, Any]]:
    """Makes one claim of each cell of a table: a row's fields over the table's, lists dealt out over the columns."""
    shared = {k: v for k, v in table.items() if k not in ("columns", "column_labels", "rows")}
    columns = table["columns"]
    labels = table.get("column_labels", columns)
    for row, given in table["rows"].items():
        values = {**shared, **given}
        label = values.pop("label", row)
        for place, (column, column_label) in enumerate(zip(columns, labels, strict=True)):
            names = {"row": row, "label": label, "column": column, "column_label": column_label}
            cell = {}
            for key, value in values.items():
                if key in DEALT and isinstance(value, list):
                    if len(value) != len(columns):
                        raise GencapsError(f"{file}: row '{row}' has {len(value)} of '{key}' to {len(columns)} columns")
                    cell[key] = value[place]
                elif isinstance(value, str):
                    cell[key] = value.format(**names)
                else:
                    cell[key] = value
            yield cell


def _make(cls: Any, values: Mapping[str, Any], where: str) -> Any:
    known = [f.name for f in fields(cls)]
    for key in values:
        if key not in known:
            raise GencapsError(f"{where} has an unknown field '{key}'{nearest(key, known)}")
    target = values.get("target")
    if isinstance(target, list):
        values = {**values, "target": tuple(map(float, target))}
    # TOML writes whole numbers without a point
    real = ("published", "published_sd", "target")
    values = {k: float(v) if k in real and type(v) is int else v for k, v in values.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise GencapsError(f"{where} is not whole: {error}") from None


def _fault(claim: Claim, book: Book) -> str | None:
    """Finds what a claim says that cannot be."""
    if not re.fullmatch(r"[a-z0-9_.-]+", claim.id) or claim.paper not in ROOMS:
        return f"has an id that does not begin with a paper ({', '.join(ROOMS)}) or holds odd letters"
    if claim.kind not in get_args(Kind):
        return f"is of kind '{claim.kind}'{nearest(claim.kind, get_args(Kind))}"
    if claim.kind == "cited":
        return "is cited, and cited claims have no run" if claim.runs or claim.measure else None
    if claim.plot is not None:
        return _fault_of_plot(claim, book)
    if not claim.runs or claim.measure is None or ":" not in claim.measure:
        return "names no run or no MEASURE:QUANTITY"
    unknown = next((name for name in claim.runs if name not in book.runs), None)
    if unknown is not None:
        return f"needs the run '{unknown}', which is nowhere{nearest(unknown, book.runs)}"
    if claim.kind == "value" and claim.direction not in get_args(Direction):
        return f"has no direction: {', '.join(get_args(Direction))}"
    if (claim.direction == "within") != isinstance(claim.target, tuple):
        return "has a range without the direction 'within', or the reverse"
    if claim.against is not None and claim.against not in book.claims:
        return f"is against '{claim.against}', which is nowhere{nearest(claim.against, book.claims)}"
    return None


def _fault_of_plot(claim: Claim, book: Book) -> str | None:
    if claim.kind != "figure" or claim.runs or claim.measure:
        return "is a plot, and plots are figures without run or measure"
    if claim.plot is None or set(claim.plot) != {"x", "y", "curves"}:
        return "is a plot without just x, y and curves"
    curves = claim.plot["curves"]
    if not isinstance(curves, Mapping) or not all(isinstance(points, Mapping) for points in curves.values()):
        return "is a plot whose curves are no tables of claims by x"
    try:
        names = [name for points in claim.drawn.values() for name in points.values()]
    except ValueError as error:
        return f"has a point whose x is no number: {error}"
    unknown = next((name for name in names if name not in book.claims), None)
    if unknown is not None:
        return f"draws '{unknown}', which is nowhere{nearest(unknown, book.claims)}"
    if not names or any(book.claims[name].kind != "value" for name in names):
        return "draws nothing, or what is no value"
    return None
