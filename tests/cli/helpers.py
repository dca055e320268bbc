"""What the tests of the command line share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from gencaps.cli import main

TINY = ["--train.epochs", "1", "--model.widths", "[8]", "--model.strides", "[2]", "--model.decoder", "[16]"]
"""A model that trains on the digits in a second."""


def ask(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Runs a command that must succeed and gives what it printed."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Runs a command that must be refused: exit code 2, nothing printed but one line on standard error."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    assert code == 2, said
    assert said.out == ""
    assert_one_line(said.err)
    return said.err


def assert_one_line(text: str) -> None:
    """Holds where a text is one line that begins as every complaint does."""
    assert text.startswith("gencaps: ")
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert "Traceback" not in text


def process(
    *words: str, stdout: int | IO[str] = subprocess.PIPE, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command as a process of its own."""
    command = [sys.executable, "-m", "gencaps", *words]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=env)


def contents(folder: Path) -> dict[str, bytes]:
    """Reads every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
