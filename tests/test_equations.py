"""docs/equations.md says which function holds an equation and which test proves it: both must exist."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAPER = re.compile(r"\([A-Z][A-Za-z]+( et al\.)?, \d{4}\)")
PLACE = re.compile(r"Eq\. \(\d+\)|Sec\. \d+(\.\d+)*|Procedure \d+|Appendix [A-Z]")


class Row(NamedTuple):
    """A line of the table, without its bars and backticks."""

    paper: str
    place: str
    what: str
    function: str
    test: str


def rows() -> list[Row]:
    """Reads every line of the table below its head; one of another form is an error, never left out."""
    lines = [line for line in (ROOT / "docs" / "equations.md").read_text().splitlines() if line.startswith("|")]
    head, rule, *body = lines
    assert head == "| paper | equation | what | function | test |"
    assert set(rule) == set("|-")
    return [Row(*(cell.strip(" `") for cell in line.strip("|").split(" | "))) for line in body]


def find(dotted: str) -> list[object]:
    """Imports the longest module of a dotted name and walks the rest: a function, or a class and its method."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        walked = []
        for name in parts[cut:]:
            found = getattr(found, name)
            walked.append(found)
        return walked
    raise AssertionError(f"{dotted} cannot be imported")


def docstring(thing: object) -> str:
    """Gives a docstring on one line, with sections named as the table names them."""
    return re.sub(r"\b[Ss]ections? (?=\d)", "Sec. ", " ".join((thing.__doc__ or "").split()))


def test_every_line_of_the_table_is_whole() -> None:
    found = rows()
    assert len(found) >= 25
    for row in found:
        assert PAPER.fullmatch(row.paper), row
        assert PLACE.fullmatch(row.place), row
        assert re.fullmatch(r"gencaps(\.\w+)+", row.function), row
        assert re.fullmatch(r"tests/[\w/]+\.py::test_\w+", row.test), row
    keys = [(row.paper, row.place, row.function) for row in found]
    assert len(set(keys)) == len(keys), "a line stands twice"


def test_every_paper_of_the_table_is_introduced_above_it() -> None:
    text = " ".join((ROOT / "docs" / "equations.md").read_text().split("\n|")[0].split())
    for paper in {row.paper for row in rows()}:
        assert f"{paper} *" in text, f"{paper} has no title"


@pytest.mark.parametrize("row", rows(), ids=lambda r: f"{r.function}-{r.place}")
def test_equation_stands_in_code_and_is_tested(row: Row) -> None:
    walked = find(row.function)
    assert callable(walked[-1])
    text = docstring(walked[-1])
    assert re.search(re.escape(row.place) + r"(?![.\d]*\d)", text), f"{row.function} does not name {row.place}"
    # a method may leave the paper to its class
    assert row.paper in " ".join(map(docstring, walked)), f"{row.function} does not name {row.paper}"
    path, _, name = row.test.partition("::")
    names = {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name in names, f"{path} has no {name}"
