"""docs/equations.md says which function holds an equation and which test proves it: both must exist."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(
    r"^\| *(?P<paper>[^|]+?) *\| *(?P<equation>[^|]+?) *\| *[^|]+\| *`(?P<function>[\w.]+)` *\| *`(?P<test>[^`]+)` *\|"
)


def rows() -> list[dict[str, str]]:
    lines = (ROOT / "docs" / "equations.md").read_text().splitlines()
    return [match.groupdict() for line in lines if (match := ROW.match(line))]


def find(dotted: str) -> object:
    """Imports the longest module of a dotted name and walks the rest."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"{dotted} cannot be imported")


def test_every_line_of_the_table_is_read() -> None:
    lines = (ROOT / "docs" / "equations.md").read_text().splitlines()
    table = [
        line for line in lines if line.startswith("|") and "---" not in line and "function" not in line.lower()[:60]
    ]
    assert len(rows()) == len([line for line in table if "`" in line]) >= 12


@pytest.mark.parametrize("row", rows(), ids=lambda r: f"{r['function']}-{r['equation']}")
def test_equation_stands_in_code_and_is_tested(row: dict[str, str]) -> None:
    text = getattr(find(row["function"]), "__doc__", "") or ""
    for number in re.findall(r"Eq\. \((\d+)\)", row["equation"]):
        assert re.search(rf"Eq\. \({number}\)", text), f"{row['function']} does not name Eq. ({number})"
    path, _, name = row["test"].partition("::")
    names = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)}
    assert name in names, f"{path} has no {name}"
