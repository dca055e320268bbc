"""The notebook runs from its first cell to its last, as it stands."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from PIL import Image

TOUR = Path(__file__).parents[1] / "examples" / "tour.ipynb"


def test_the_tour_runs_and_shows_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = ["".join(cell["source"]) for cell in json.loads(TOUR.read_text())["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    shown = []
    for cell in cells:
        tree = ast.parse(cell)
        # a notebook shows the value of a cell's last line
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, TOUR.name, "exec"), space)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), TOUR.name, "eval"), space))
    assert sum(isinstance(one, Image.Image) for one in shown) >= 6


def test_the_tour_points_at_pages_that_exist() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TOUR.read_text())
    assert links
    for link in links:
        assert (TOUR.parent / link).exists(), link
