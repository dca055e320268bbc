"""The models that come with the package: small, whole, and as good as their cards say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import gencaps
from gencaps.data import synthetic
from gencaps.engine.pretrained import shipped

NAMES = sorted(shipped())
BYTES = 3_000_000


def test_there_are_some() -> None:
    assert {"faces", "fashion_mnist", "mnist"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_small_and_has_a_card_with_figures(name: str) -> None:
    folder = shipped()[name]
    assert sum(file.stat().st_size for file in folder.iterdir()) <= BYTES
    card = (folder / "README.md").read_text()
    for word in ("parameters", "## How it was made", "seed: ", "accuracy: ", f'gencaps.load("{name}")'):
        assert word in card
    assert not re.search(r"/(root|home|work)/", card)


@pytest.mark.parametrize("name", NAMES)
def test_each_paints_what_its_own_eyes_then_read(name: str) -> None:
    model = gencaps.load(name, "cpu")
    if model.info.labels == "classes":
        made = model.generate(n=5, seed=3)
        read = model.classify(made.pictures).label
        wanted = [one for one in model.names for _ in range(5)]
        assert sum(a == b for a, b in zip(read, wanted, strict=True)) >= 0.9 * len(wanted)


def faces(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws faces that the model was neither trained nor tested on."""
    numbers = synthetic.sample(n, 12345)
    return synthetic.draw(*numbers, 64).float() / 255, numbers.attributes.long()


def test_faces_reads_faces_that_it_never_saw() -> None:
    x, y = faces(60)
    model: Any = gencaps.load("faces", "cpu").model
    with torch.no_grad():
        assert (model.classify(x).label == y).float().mean() > 0.98
        assert (model.reconstruct(x) - x).square().mean() < 0.004


def test_an_edit_of_faces_changes_its_place_and_little_else() -> None:
    """Where each attribute may show is known, so the change can be looked for there."""
    x, y = faces(30)
    model: Any = gencaps.load("faces", "cpu").model
    nuisance = synthetic.sample(30, 12345).nuisance
    with torch.no_grad():
        before = model.reconstruct(x)
        for place, name in enumerate(model.pictures.names):
            wanted = torch.full_like(y, -1)
            wanted[:, place] = 1 - y[:, place]
            change = (model.edit(x, wanted) - before).abs().mean(1)
            region = synthetic.region(name, nuisance, 64)
            assert change[region].mean() > 2 * change[~region].mean(), name
            assert change[~region].mean() < 0.02, name


def test_command_line_takes_them_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gencaps.cli import main

    main(["generate", "fashion_mnist", "--n", "2", "--out", str(tmp_path / "new.png")])
    assert (tmp_path / "new.png").stat().st_size > 1000
    main(["info"])
    assert "fashion_mnist" in capsys.readouterr().out


def test_a_single_picture_is_written_bare_and_can_be_edited(tmp_path: Path) -> None:
    from PIL import Image

    from gencaps.cli import main

    face, hats = tmp_path / "face.png", tmp_path / "hats.png"
    assert main(["generate", "faces", "--attributes", "Hat=0,Smiling=1", "--n", "1", "--out", str(face)]) == 0
    assert Image.open(face).size == (64, 64)
    assert main(["edit", "faces", str(face), "--set", "Hat=1", "--styles", "3", "--out", str(hats)]) == 0
    model = gencaps.load("faces", "cpu")
    assert model.classify(face).presence[0, model.names.index("Hat")] < 0.1
