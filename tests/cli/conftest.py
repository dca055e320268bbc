"""Runs that the command line is asked about, and a place of its own for each test."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
import torch

from gencaps.cli import main
from gencaps.engine import fit as fit_module
from tests.cli.helpers import TINY
from tests.helpers import isolated


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts each test into an empty folder, off the user's own data and cache, on a machine without a GPU."""
    monkeypatch.setenv("COLUMNS", "120")
    return isolated(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def stopped_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trains with a Ctrl-C in the third of twenty steps."""
    run, real, taken = tmp_path_factory.mktemp("stopped") / "run", fit_module.take_step, 0

    def counted(*arguments: object, **options: object) -> dict[str, torch.Tensor]:
        nonlocal taken
        taken += 1
        if taken == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)  # pyright: ignore[reportArgumentType]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "take_step", counted)
        assert main(["train", "variational", "--out", str(run), "--quiet", "--device", "cpu", *TINY]) == 130
    return run


@pytest.fixture
def stopped(stopped_once: Path, place: Path) -> Path:
    """Gives a copy of a run that was stopped in the middle of its only epoch."""
    return shutil.copytree(stopped_once, place / "stopped")


@pytest.fixture
def trained(trained_digits: Path, place: Path) -> Path:
    """Gives a copy of a finished run, for tests that damage it."""
    return shutil.copytree(trained_digits, place / "trained", ignore=shutil.ignore_patterns("tensorboard"))
