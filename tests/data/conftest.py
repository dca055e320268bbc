"""Keeps every test of this room off the user's own data and cache."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives each test a cache of its own, and hides the real data from tests that do not ask for it."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GENCAPS_CACHE", str(folder))
    if "real_data" not in request.fixturenames:
        monkeypatch.delenv("GENCAPS_DATA", raising=False)
    return folder
