"""What many tests say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gencaps.errors import GencapsError


def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a test into an empty folder, off the user's own data and cache, on a machine without a GPU."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GENCAPS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GENCAPS_DATA", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return folder


def refused(call: Callable[[], object], *words: str) -> None:
    """The call is refused on one line that says these words."""
    with pytest.raises(GencapsError) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said
    assert all(word in said for word in words), said
