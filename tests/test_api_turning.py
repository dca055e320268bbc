"""Capsules turned by hand, and objects moved by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gencaps.api import Capsules, load
from gencaps.cli import main
from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe
from gencaps.figures import gif, save_gif
from gencaps.model import PictureInfo
from gencaps.wishes import read_dials
from tests.helpers import refused

INFO = PictureInfo(1, 8, tuple("0123456789"), "classes", "digits")


@pytest.fixture(scope="module")
def faces() -> Capsules:
    return load("faces", "cpu")


def untrained(paper: str) -> Capsules:
    torch.manual_seed(0)
    return Capsules(build(paper, make_recipe(paper, preset="small", data="digits").model, INFO))


def test_dials_left_alone_paint_the_reconstruction(model: Capsules, faces: Capsules, a: Path) -> None:
    face = faces.generate(attributes="Hat=1", n=1, seed=3).pictures
    for capsules, x in ((model, model.pictures(a)), (faces, face)):
        values, on, presence = capsules.dials(x)
        assert torch.allclose(capsules.paint(values, on).pictures, capsules.reconstruct(x).pictures, atol=1e-6)
        assert presence.shape == on.shape


def test_dials_of_experts_paint_the_reconstruction() -> None:
    experts = untrained("product_of_experts")
    x = torch.rand(2, 1, 8, 8)
    values, on, _ = experts.dials(x)
    assert torch.allclose(experts.paint(values, on).pictures, experts.reconstruct(x).pictures, atol=1e-4)


def test_switching_by_hand_is_the_edit_at_every_intensity(faces: Capsules) -> None:
    """An edit walks from [a, 1] of the capsule that is off to [0, 1] of the one that is on, the prior's mean."""
    x = faces.generate(attributes="Hat=0", n=1, seed=5).pictures
    values, on, _ = faces.dials(x)
    inner: Any = faces.model
    names = inner.capsule_names
    off, hat = names.index("Hat off"), names.index("Hat on")
    assert on[0, off] == 1
    for share in (0.0, 0.3, 1.0):
        by_hand = values.clone(), on.clone()
        by_hand[0][:, hat] = 0.0
        by_hand[1][:, off], by_hand[1][:, hat] = 1 - share, share
        wanted = faces.edit(x, "Hat=1", intensity=share).pictures
        assert torch.allclose(faces.paint(*by_hand).pictures, wanted, atol=1e-5)


def test_a_turned_dial_reads_as_it_was_set(model: Capsules, a: Path) -> None:
    values, on, presence = model.dials(a)
    name = model.names[int(presence[0].argmax())]
    turned = model.turn(a, {f"{name}.2": 1.5})
    values[:, model.names.index(name), 2] = 1.5
    assert torch.equal(turned.pictures, model.paint(values, on).pictures)
    assert not torch.allclose(turned.pictures, model.reconstruct(a).pictures, atol=1e-3)


def test_dials_are_read_from_text_and_refused_by_name() -> None:
    names = ("Hat on", "a.b")
    assert read_dials("Hat on.0=1.5, a.b.3=-2", names, 4) == {(0, 0): 1.5, (1, 3): -2.0}
    refused(lambda: read_dials("Hatt on.0=1", names, 4), "Hatt on", "did you mean 'Hat on'?")
    refused(lambda: read_dials("Hat on.4=1", names, 4), "Hat on.4", "0 to 3")
    for value in ("x", "nan", "inf", ""):
        refused(lambda value=value: read_dials(f"Hat on.0={value}", names, 4), "Hat on.0")


def test_an_object_moved_nowhere_changes_nothing_and_an_unknown_one_is_refused() -> None:
    scene = untrained("probabilistic")
    x = torch.rand(2, 1, 8, 8)
    assert torch.allclose(scene.move(x, 0).pictures, scene.reconstruct(x).pictures, atol=1e-5)
    refused(lambda: scene.move(x, 99), "99", "objects 0 to")
    refused(lambda: load("faces", "cpu").move(x, 0), "cannot move")


def test_an_edit_with_numbers_by_hand_is_the_edit_but_for_those(faces: Capsules) -> None:
    x = faces.generate(attributes={"Hat": 0}, n=2, seed=5).pictures
    values, on, _ = faces.dials(x)
    model: Any = faces.model
    names = model.capsule_names
    off, hat = names.index("Hat off"), names.index("Hat on")
    on[:, off], on[:, hat] = 0.0, 1.0
    values[:, hat] = 0.0  # the plainest hat
    torch.testing.assert_close(faces.paint(values, on).pictures, faces.edit(x, "Hat=1").pictures, rtol=0, atol=1e-5)
    values[:, hat, 2] = 1.5
    both = faces.edit(x, "Hat=1", turn={"Hat on.2": 1.5}).pictures
    torch.testing.assert_close(faces.paint(values, on).pictures, both, rtol=0, atol=1e-5)
    assert not torch.allclose(both, faces.edit(x, "Hat=1").pictures, atol=1e-3)
    # no way towards an edit begins elsewhere than at the picture
    start = faces.edit(x, "Hat=1", turn={"Hat on.2": 1.5}, intensity=0.0).pictures
    torch.testing.assert_close(start, faces.reconstruct(x).pictures, rtol=0, atol=1e-5)
    refused(lambda: faces.edit(x, "Hat=1", turn={"Hatt on.2": 1.5}), "Hatt on", "did you mean 'Hat on'?")


def test_commands_turn_and_move(trained_digits: Path, a: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.png"
    assert main(["turn", str(trained_digits), str(a), "--set", "3.0=2", "--out", str(out)]) == 0
    assert out.exists()
    assert main(["turn", str(trained_digits), str(a), "--set", "33.0=2"]) != 0
    both = tmp_path / "both.gif"
    words = ["edit", str(trained_digits), str(a), "--set", "3", "--turn", "3.0=2"]
    assert main([*words, "--out", str(both)]) == 0
    model = load(str(trained_digits), "cpu")
    changed = model.edit(a, "3", turn="3.0=2")
    assert not torch.equal(changed.pictures, model.edit(a, "3").pictures)
    strip = torch.cat([model.pictures(a), model.reconstruct(a).pictures, changed.pictures])
    assert both.read_bytes() == gif(strip)
    assert main([*words[:-1], "33.0=2"]) != 0
    assert main(["move", str(trained_digits), str(a), "--object", "0", "--right", "0.5"]) != 0


def test_a_gif_in_memory_is_the_one_that_is_saved(tmp_path: Path) -> None:
    x = torch.rand(3, 1, 8, 8)
    assert save_gif(x, tmp_path / "a.gif").read_bytes() == gif(x)
