"""Processes that work on the same folder take turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl", reason="this system has no such locks")

CODE = """
import sys, time
from pathlib import Path
from gencaps.files import alone
path = Path(sys.argv[1])
with alone(path / "run"):
    with (path / "said").open("a") as said:
        for word in ("in", "out"):
            said.write(word + " ")
            said.flush()
            time.sleep(0.3)
"""


def test_one_comes_in_after_the_other_has_gone_out(tmp_path: Path) -> None:
    both = [subprocess.Popen([sys.executable, "-c", CODE, str(tmp_path)]) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    assert (tmp_path / "said").read_text().split() == ["in", "out", "in", "out"]
