"""The wheel holds all that the package needs, and works where nothing of the checkout can be seen."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(folder.glob("*.whl"))


def test_wheel_holds_presets_pages_and_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src"
    wanted = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert "gencaps/py.typed" in wanted
    assert "gencaps/configs/variational/small.yaml" in wanted
    assert wanted <= names


def test_wheel_trains_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    # the checkout, though installed for editing, must not be what is imported
    environment = os.environ | {"PYTHONPATH": str(site)}
    where = [sys.executable, "-c", "import gencaps; print(gencaps.__file__)"]
    found = subprocess.run(where, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert found.stdout.startswith(str(site))
    settings = ["--train.epochs", "1", "--model.widths", "[8]", "--model.strides", "[2]", "--model.decoder", "[16]"]
    words = [sys.executable, "-m", "gencaps", "train", "variational", "--out", "run", "--quiet", *settings]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
