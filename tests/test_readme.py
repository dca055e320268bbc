"""The README's Python runs as it stands, and what it points at exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_python_blocks_run(trained_digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert BLOCKS, "the README shows no Python"
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "demo").symlink_to(trained_digits)
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), space)


def test_links_and_pictures_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", README):
        if not target.startswith(("http://", "https://")):
            assert (ROOT / target).exists(), f"README.md points at {target}, which is not there"
