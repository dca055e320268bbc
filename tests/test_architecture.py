"""Imports run only downwards through the rooms, and the command line stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gencaps

ROOT = Path(gencaps.__file__).parent
# lowest first: a room may import itself and what stands before it
ROOMS = [
    "errors",
    "files",
    "configs",
    "primitives",
    "data",
    "metrics",
    "figures",
    "painted",
    "model",
    "abilities",
    "trees",
    "wishes",
    "asked",
    "game",
    "papers",
    "baselines",
    "systems",
    "engine",
    "reproduce",
    "api",
    "report",
    "service",
    "cli",
]


def room(module: str) -> int | None:
    """Gives the height of ``gencaps.engine.fit`` and the like; ``None`` for what is no room."""
    parts = module.split(".")
    return ROOMS.index(parts[1]) if len(parts) > 1 and parts[1] in ROOMS else None


def imports(path: Path) -> list[str]:
    """Lists the gencaps modules that a file imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.startswith("gencaps.")]


FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downwards(path: Path) -> None:
    own = room("gencaps." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert own is not None, f"{path} stands in no room: add it to ROOMS and to docs"
    above = [name for name in imports(path) if (height := room(name)) is not None and height > own]
    assert not above, f"{path.relative_to(ROOT)} imports upwards: {above}"


def test_papers_do_not_import_each_other() -> None:
    for path in (ROOT / "papers").glob("*/*.py"):
        own = f"gencaps.papers.{path.parent.name}"
        others = [n for n in imports(path) if n.startswith("gencaps.papers.") and not n.startswith(own)]
        assert not others, f"{path.relative_to(ROOT)} imports {others}"


def test_primitives_import_torch_alone() -> None:
    everywhere = {"torch", "jaxtyping", "gencaps"} | set(sys.stdlib_module_names)
    for path in (ROOT / "primitives").glob("*.py"):
        allowed = everywhere | ({"triton"} if path.stem.endswith("_triton") else set())
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert {name.split(".")[0] for name in names} <= allowed, path.name


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["train", "--help"], ["data", "--help"], ["serve", "--help"]]
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    """Half a second of CPU time is kept by never importing what takes longer; no clock is needed."""
    code = (
        "import sys; from gencaps.cli import main\n"
        f"try: main({words!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'sklearn', 'matplotlib', 'PIL', 'rich', 'lightning_fabric', 'pooch', 'shtab'}\n"
        "heavy |= {'fastapi', 'uvicorn', 'pydantic', 'prometheus_client'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"imported {done.stderr}"


def test_shapes_are_checked_on_every_call_of_a_test() -> None:
    """The checks are switched on in pyproject.toml; a conftest that imports gencaps would switch them off."""
    import torch
    from jaxtyping import TypeCheckError

    from gencaps.primitives.gaussian import kl_to_standard_normal

    with pytest.raises(TypeCheckError):
        kl_to_standard_normal(torch.zeros(2, 3), torch.zeros(2, 4))
