"""A model goes to the hub as a model folder and comes back as the same model; the hub is a folder here."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gencaps.api import Capsules, load
from gencaps.cli import main


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub of folders."""

    class HfApi:
        def create_repo(self, id: str, *, private: bool, exist_ok: bool) -> None:
            if id.startswith("somebody/"):
                raise PermissionError("403: you may not write there")
            (tmp_path / id).mkdir(parents=True, exist_ok=exist_ok)

        def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> None:
            shutil.copytree(folder_path, tmp_path / repo_id, dirs_exist_ok=True)

    def snapshot_download(id: str, *, allow_patterns: list[str]) -> str:
        return str(tmp_path / id)

    module: Any = SimpleNamespace(HfApi=HfApi, snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return tmp_path


def test_a_model_comes_back_from_the_hub_as_it_went(hub: Path, trained_digits: Path, model: Capsules, a: Path) -> None:
    assert main(["push", str(trained_digits), "me/digits"]) == 0
    assert {file.name for file in (hub / "me/digits").iterdir()} == {"config.json", "model.safetensors", "README.md"}
    back = load("me/digits", "cpu")
    assert torch.equal(back.reconstruct(a).pictures, model.reconstruct(a).pictures)


@pytest.mark.parametrize(
    ("id", "words"), [("digits", "OWNER/NAME"), ("../x/y", "OWNER/NAME"), ("somebody/digits", "403")]
)
def test_what_cannot_be_published_is_said_in_a_line(
    hub: Path, trained_digits: Path, capsys: pytest.CaptureFixture[str], id: str, words: str
) -> None:
    assert main(["push", str(trained_digits), id]) != 0
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "\n" not in said
