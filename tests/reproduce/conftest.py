"""Keeps every test of this room off the user's own data and cache, and off the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # imported here it would escape the shape checks, which begin after this file is read
    from gencaps.engine.train import Trained
    from gencaps.reproduce.run import Bench


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts each test into an empty folder."""
    from gencaps.reproduce.hand import celeba_pictures
    from tests.helpers import isolated

    celeba_pictures.cache_clear()
    return isolated(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One bench for all smoke runs, so that a run behind several claims is trained once."""
    from gencaps.reproduce.claims import book
    from gencaps.reproduce.run import Bench

    folder = tmp_path_factory.mktemp("bench")
    return Bench(book(), folder / "runs", folder / "results", folder / "judges", "cpu", smoke=True, quiet=True)


@pytest.fixture(scope="session")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A residual network, trained on the digits for one epoch."""
    from gencaps.reproduce.judge import judge_recipe
    from gencaps.reproduce.training import ensure_trained

    path = tmp_path_factory.mktemp("resnet") / "run"
    return ensure_trained(judge_recipe("digits", smoke=True), path, device="cpu", quiet=True)
