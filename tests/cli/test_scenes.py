"""What the command line offers of a scene of objects and parts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from gencaps.cli import main
from tests.cli.helpers import ask, refused

SMALL = ["--train.epochs", "1", "--model.capsules", "[3, 4]", "--model.widths", "[8, 8, 8, 8]", "--model.features", "4"]


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trains a tiny scene on the digits."""
    run = tmp_path_factory.mktemp("scene") / "run"
    assert main(["train", "probabilistic", "--out", str(run), "--quiet", "--device", "cpu", *SMALL]) == 0
    return run


@pytest.fixture
def run(trained_once: Path, place: Path) -> Path:
    """Gives a copy of it, and a picture beside it."""
    Image.new("L", (8, 8), 90).save("a.png")
    return shutil.copytree(trained_once, place / "scene", ignore=shutil.ignore_patterns("tensorboard"))


def test_capsules_of_every_layer_are_printed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = json.loads(ask(capsys, "encode", run, "a.png", "--json"))
    assert [len(layer["presence_logit"]) for layer in code["layers"]] == [3, 4]
    assert code["turn"] == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert len(ask(capsys, "encode", run, "a.png").split("presence")[1].split()) == 3


def test_a_probe_reads_objects(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ask(capsys, "probe", run, "--labels", "200", "--json"))
    assert 0.1 < said["accuracy"] <= 1


def test_a_parse_is_drawn_as_a_tree(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ask(capsys, "explain", run, "a.png", "--tree", "--out", "tree.png")
    assert text.startswith("a.png\n")
    assert "wrote tree.png" in text
    assert Image.open("tree.png").width > 64
    (tree,) = json.loads(ask(capsys, "explain", run, "a.png", "--tree", "--json"))
    assert tree["name"] == "a.png"
    Image.new("L", (8, 8), 90).save("b.png")
    said = refused(capsys, "explain", run, "a.png", "b.png", "--tree", "--out", "t.png")
    assert "one picture, and 2 were given" in said


def test_objects_are_moved_and_placed_and_templates_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ask(capsys, "move", run, "a.png", "--right", "0.5", "--steps", "3", "--json", "--out", "m.gif"))
    assert (said["columns"], said["pictures"], said["right"]) == (5, 5, 0.5)
    assert Path("m.gif").exists()
    every = json.loads(ask(capsys, "place", run, "--json", "--turn", "30"))
    assert every["labels"] == ["object 0", "object 1", "object 2"]
    two = json.loads(ask(capsys, "place", run, "--object", "0,2", "--json", "--out", "two.png"))
    assert (two["labels"], two["pictures"]) == (["object 0, 2"], 1)
    assert json.loads(ask(capsys, "templates", run, "--json"))["pictures"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["move", "RUN", "a.png"], "nothing was asked for"),
        (["move", "RUN", "a.png", "--object", "3", "--right", "1"], "no object '3': this model has objects 0 to 2"),
        (["move", "RUN", "a.png", "--right", "nan"], "right is nan"),
        (["move", "RUN", "a.png", "--scale", "0"], "scale is 0.0; it must be above 0"),
        (["move", "RUN", "a.png", "--turn", "x"], "'x' is not a number"),
        (["move", "RUN", "a.png", "--right", "1", "--steps", "0"], "steps is 0"),
        (["place", "RUN", "--object", "7"], "no object '7'"),
        (["place", "RUN", "--scale", "1e9"], "scale is 1000000000.0"),
    ],
)
def test_what_cannot_be_is_refused(run: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert said in refused(capsys, *(str(run) if word == "RUN" else word for word in words))


def test_other_models_say_that_they_cannot(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.new("L", (8, 8), 90).save("a.png")
    assert "cannot move; it can classify" in refused(capsys, "move", trained, "a.png", "--right", "1")
    assert "cannot place" in refused(capsys, "place", trained)
    assert "cannot show templates" in refused(capsys, "templates", trained)


def test_new_scenes_are_drawn_plainly_where_asked(run: Path, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, words in (("a", []), ("b", ["--plain"]), ("c", ["--plain"])):
        ask(capsys, "generate", run, "--n", "3", "--seed", "5", *words, "--out", f"{name}.png")
    astray, plain, again = (Path(f"{name}.png").read_bytes() for name in "abc")
    assert plain == again != astray
    assert "plain is for scenes" in refused(capsys, "generate", trained, "--plain")
    assert "beside plain" in refused(capsys, "generate", run, "--plain", "--classes", "3")


def test_an_object_that_is_not_there_is_said_not_to_move(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gencaps.papers.probabilistic.telling import Telling

    def nobodys(self: Telling, code: Any) -> torch.Tensor:
        return torch.eye(4)[[0]].expand(len(code.turn), 4, 4).transpose(1, 2)  # all of it is clutter

    assert main(["move", str(run), "a.png", "--object", "2", "--turn", "30", "--out", "m.png"]) == 0
    monkeypatch.setattr(Telling, "belongs", nobodys)
    capsys.readouterr()
    assert main(["move", str(run), "a.png", "--object", "2", "--turn", "30", "--out", "n.png"]) == 0
    assert "object 2 has no part in a.png: nothing moved" in capsys.readouterr().err


def test_of_many_objects_the_first_are_named_and_the_rest_counted(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gencaps.cli import asking

    monkeypatch.setattr(asking, "SHOWN", 2)
    assert ask(capsys, "place", run, "--out", "p.png") == "wrote p.png: object 0, object 1, and 1 more\n"
