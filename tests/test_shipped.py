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
    assert {"mnist_gan", "mnist_experts", "fashion_mnist_experts", "mnist_scene"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_small_and_has_a_card_with_figures(name: str) -> None:
    folder = shipped()[name]
    assert sum(file.stat().st_size for file in folder.iterdir()) <= BYTES
    card = (folder / "README.md").read_text()
    for word in ("parameters", "## How it was made", "seed: ", f'gencaps.load("{name}")'):
        assert word in card
    assert re.search(r"^- (accuracy|mse|painted as asked.*): [\d.]+$", card, re.MULTILINE)
    assert not re.search(r"/(root|home|work)/", card)


@pytest.mark.parametrize("name", NAMES)
def test_each_paints_what_its_own_eyes_then_read(name: str) -> None:
    model = gencaps.load(name, "cpu")
    if model.info.labels == "classes" and {"classify", "generate"} <= set(model.can):
        made = model.generate(n=5, seed=3)
        read = model.classify(made.pictures).label
        wanted = [one for one in model.names for _ in range(5)]
        assert sum(a == b for a, b in zip(read, wanted, strict=True)) >= 0.9 * len(wanted)


def test_the_gan_paints_the_digit_it_is_asked_for() -> None:
    model, reader = gencaps.load("mnist_gan", "cpu"), gencaps.load("mnist", "cpu")
    wanted = [name for name in model.names for _ in range(5)]
    read = reader.classify(model.generate(n=5, seed=3).pictures).label
    assert sum(a == b for a, b in zip(read, wanted, strict=True)) >= 0.95 * len(wanted)


@pytest.mark.parametrize(("name", "reader"), [("mnist_experts", "mnist"), ("fashion_mnist_experts", "fashion_mnist")])
def test_single_experts_draw_what_another_model_knows(name: str, reader: str) -> None:
    seen = gencaps.load(reader, "cpu").classify(gencaps.load(name, "cpu").generate(n=100, seed=3).pictures)
    assert (seen.presence.amax(1) > 0.9).float().mean() > 0.8
    assert len(set(seen.label)) >= 8


def test_the_scene_paints_digits_again_and_tells_upright_ones() -> None:
    digits = gencaps.load("mnist", "cpu").generate(n=3, seed=3).pictures
    model: Any = gencaps.load("mnist_scene", "cpu").model
    with torch.no_grad():
        code = model.encode(digits)
        assert (model.reconstruct(digits) - digits).square().mean() < 0.006
    assert (code.turn[:, 0, 0] > 0.8).float().mean() > 0.9  # the cosine of the turn
    assert len(set(code.presence.argmax(1).tolist())) >= 8


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
