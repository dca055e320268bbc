"""Editing from the command line: attributes and classes, strips and styles, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from gencaps.baselines.gan.config import GANConfig
from gencaps.baselines.gan.model import ConvGAN
from gencaps.cli import main
from gencaps.data import synthetic
from gencaps.engine.pretrained import save_pretrained
from gencaps.figures import to_images
from gencaps.model import PictureInfo
from tests.cli.helpers import ask, refused

TRAIN = ["--train.size", "32", "--train.epochs", "2", "--train.samples_every", "0"]
TINY = ["--model.widths", "[8,8]", "--model.strides", "[2,2]", "--model.decoder", "[32]"]


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("edit") / "faces"
    words = ["train", "variational", "--preset", "small", "--data", "faces:60", "--out", str(run)]
    assert main([*words, *TRAIN, *TINY, "--quiet", "--no-report", "--device", "cpu"]) == 0
    for name, image in zip(("f.png", "g.png"), to_images(synthetic.faces(2, 32, seed=9).x), strict=True):
        image.save(run / name)
    return run


@pytest.fixture(scope="module")
def gan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = ConvGAN(GANConfig(latent=4, width=4, discriminator=4), PictureInfo(1, 16, ("a", "b"), data="digits"))
    return save_pretrained(model, tmp_path_factory.mktemp("gan") / "model")


def told(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    return json.loads(ask(capsys, *words, "--json"))


def heard(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[str, str]:
    """Gives what a command that succeeds says on both streams."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    said = capsys.readouterr()
    return said.out, said.err


Capsys = pytest.CaptureFixture[str]


def test_generate_by_attributes(faces: Path, place: Path, capsys: Capsys) -> None:
    said = told(capsys, "generate", faces, "--attributes", "Eyeglasses=1,Smiling=0", "--n", "3", "--out", "a.png")
    assert said["labels"] == ["Eyeglasses=1, Smiling=0"]
    assert (said["columns"], said["pictures"], said["out"]) == (3, 3, "a.png")
    told(capsys, "generate", faces, "--attributes", "eyeglasses=on, smiling=no", "--n", "3", "--out", "b.png")
    told(capsys, "generate", faces, "--attributes", "Eyeglasses=0,Smiling=0", "--n", "3", "--out", "c.png")
    told(
        capsys, "generate", faces, "--attributes", "Eyeglasses=1,Smiling=0", "--n", "3", "--out", "d.png", "--seed", "1"
    )
    a, b, c, d = ((place / f"{name}.png").read_bytes() for name in "abcd")
    assert a == b
    assert a not in (c, d)


def test_generate_like_a_picture(faces: Path, place: Path, capsys: Capsys) -> None:
    said = told(capsys, "generate", faces, "--like", faces / "f.png", "--n", "4")
    assert (said["columns"], said["pictures"], len(said["labels"])) == (4, 4, 1)
    said = told(capsys, "generate", faces, "--like", faces / "f.png", "--attributes", "Hat=1", "--n", "2")
    assert said["labels"] == ["Hat=1"]


def test_generate_like_a_digit(trained_digits: Path, a: Path, capsys: Capsys) -> None:
    seen = json.loads(ask(capsys, "classify", trained_digits, a, "--json"))[0]["label"]
    assert told(capsys, "generate", trained_digits, "--like", a)["labels"] == [seen]


def test_edit_shows_original_reconstruction_and_edits(faces: Path, place: Path, capsys: Capsys) -> None:
    """Two columns before those of the edit, a row a picture."""
    edit = ("edit", faces, faces / "f.png", "--set", "Eyeglasses=1")
    said = told(capsys, *edit)
    assert (said["columns"], said["pictures"], said["set"], said["out"]) == (3, 3, "Eyeglasses=1", None)
    assert told(capsys, *edit, "--styles", "8")["columns"] == 10
    assert told(capsys, *edit, "--steps", "5")["columns"] == 7
    assert told(capsys, *edit, "--steps", "3", "--styles", "2")["columns"] == 8
    both = told(capsys, "edit", faces, faces / "f.png", faces / "g.png", "--set", "Hat=1", "--styles", "2")
    assert (both["columns"], both["pictures"], len(both["labels"])) == (4, 8, 2)


def test_edit_writes_png_and_gif(faces: Path, place: Path, capsys: Capsys) -> None:
    edit = ("edit", faces, faces / "f.png", "--set", "Hat=1")
    assert "wrote strip.png" in ask(capsys, *edit, "--steps", "5", "--out", "strip.png")
    with Image.open(place / "strip.png") as image:
        assert image.format == "PNG"
        assert image.width > 7 * 32
    assert "wrote strip.gif" in ask(capsys, *edit, "--steps", "5", "--out", "strip.gif")
    with Image.open(place / "strip.gif") as image:
        assert image.format == "GIF"
        assert image.n_frames > 1  # pyright: ignore[reportAttributeAccessIssue]


def test_edit_draws_in_the_terminal_where_nothing_is_written(faces: Path, place: Path, capsys: Capsys) -> None:
    assert ask(capsys, "edit", faces, faces / "f.png", "--set", "Hat=1").strip()
    assert list(place.iterdir()) == []


def test_options_of_an_edit_change_the_picture(faces: Path, place: Path, capsys: Capsys) -> None:
    """Each option by itself; and a seed that is told twice paints twice the same."""
    seen = json.loads(ask(capsys, "classify", faces, faces / "f.png", "--json"))[0]["presence"]
    flips = ",".join(f"{name}={0 if seen[name] > 0.5 else 1}" for name in ("Hat", "Beard", "Bangs"))
    edit = ("edit", faces, faces / "f.png", "--set", flips)
    options: dict[str, list[str]] = {
        "plain": [],
        "half": ["--intensity", "0.5"],
        "none": ["--intensity", "0"],
        "full": ["--intensity", "1"],
        "style": ["--styles", "1"],
        "other": ["--styles", "1", "--seed", "1"],
        "same": ["--styles", "1", "--seed", "0"],
        "sample": ["--sample"],
        "seeded": ["--seed", "3"],
    }
    shown = {}
    for name, words in options.items():
        ask(capsys, *edit, *words, "--out", f"{name}.png")
        shown[name] = (place / f"{name}.png").read_bytes()
    assert shown["plain"] == shown["full"] == shown["seeded"]
    assert shown["style"] == shown["same"]
    different = ("plain", "half", "none", "style", "other", "sample")
    assert len({shown[name] for name in different}) == len(different)


def test_inverted_pictures_are_edited_inverted(trained_digits: Path, a: Path, place: Path, capsys: Capsys) -> None:
    with Image.open(a) as image:
        image.convert("L").point(lambda v: 255 - v).save(place / "dark.png")
    ask(capsys, "edit", trained_digits, a, "--set", "7", "--out", "one.png")
    ask(capsys, "edit", trained_digits, "dark.png", "--invert", "--set", "7", "--out", "two.png")
    with Image.open("one.png") as one, Image.open("two.png") as two:
        assert one.tobytes() == two.tobytes()


def test_a_digit_becomes_another(trained_digits: Path, a: Path, place: Path, capsys: Capsys) -> None:
    said = told(capsys, "edit", trained_digits, a, "--set", "7", "--styles", "3")
    assert (said["columns"], said["pictures"], said["set"]) == (5, 5, "7")


def test_resample_and_interpolate_only_some_attributes(faces: Path, place: Path, capsys: Capsys) -> None:
    f, g = faces / "f.png", faces / "g.png"
    assert told(capsys, "resample", faces, f, "--only", "smiling, hat", "--n", "3", "--out", "a.png")["columns"] == 3
    told(capsys, "resample", faces, f, "--n", "3", "--out", "b.png")
    assert (place / "a.png").read_bytes() != (place / "b.png").read_bytes()
    walk = ("interpolate", faces, f, g, "--steps", "5")
    assert told(capsys, *walk, "--only", "Smiling", "--out", "c.png")["columns"] == 5
    told(capsys, *walk, "--out", "d.png")
    assert (place / "c.png").read_bytes() != (place / "d.png").read_bytes()


REFUSED: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "an attribute unknown": ("edit", ["f.png", "--set", "Eyeglases=1"], ("'Eyeglases'", "did you mean 'Eyeglasses'?")),
    "a contradiction": ("edit", ["f.png", "--set", "Hat=1,hat=0"], ("Hat", "both on and off")),
    "neither on nor off": ("edit", ["f.png", "--set", "Hat"], ("'Hat'", "Hat=1 or Hat=0")),
    "a value that is none": ("edit", ["f.png", "--set", "Hat=2"], ("Hat=2", "give 1 or 0")),
    "an empty wish": ("edit", ["f.png", "--set", ""], ("nothing was asked for", "Eyeglasses=1")),
    "no wish": ("edit", ["f.png"], ("required: --set",)),
    "no value of an option": ("edit", ["f.png", "--set"], ("--set", "expected one argument")),
    "too far": ("edit", ["f.png", "--set", "Hat=1", "--intensity", "1.5"], ("--intensity", "1.5", "from 0 to 1")),
    "below nothing": ("edit", ["f.png", "--set", "Hat=1", "--intensity=-0.5"], ("--intensity", "from 0 to 1")),
    "not a number": ("edit", ["f.png", "--set", "Hat=1", "--intensity", "nan"], ("--intensity", "from 0 to 1")),
    "a word": ("edit", ["f.png", "--set", "Hat=1", "--intensity", "much"], ("--intensity", "'much'", "number")),
    "steps and intensity": (
        "edit",
        ["f.png", "--set", "Hat=1", "--steps", "5", "--intensity", "0.5"],
        ("--steps", "leave --intensity out"),
    ),
    "one step": ("edit", ["f.png", "--set", "Hat=1", "--steps", "1"], ("--steps", "2 or more")),
    "fewer than no styles": ("edit", ["f.png", "--set", "Hat=1", "--styles", "-2"], ("styles is -2",)),
    "a negative seed": ("edit", ["f.png", "--set", "Hat=1", "--sample", "--seed", "-x"], ("--seed",)),
    "no picture": ("edit", ["nowhere.png", "--set", "Hat=1"], ("nowhere.png", "No such file")),
    "no picture to be like": ("generate", ["--like", "nowhere.png"], ("nowhere.png", "No such file")),
    "classes of attributes": ("generate", ["--classes", "Hat"], ("attributes, no classes", "Eyeglasses=1")),
    "an unknown attribute to paint": ("generate", ["--attributes", "Hatt=1"], ("'Hatt'", "did you mean 'Hat'?")),
    "an unknown choice": ("resample", ["f.png", "--only", "Hatt"], ("'Hatt'", "did you mean 'Hat'?")),
    "an empty choice": ("resample", ["f.png", "--only", ","], ("no attribute was named",)),
    "an unknown choice of a walk": ("interpolate", ["f.png", "f.png", "--only", "Hatt"], ("'Hatt'", "'Hat'?")),
    "a wrong ending": ("edit", ["f.png", "--set", "Hat=1", "--out", "a.txt"], ("a.txt", "'.txt'")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_edit_that_makes_no_sense_is_told_in_one_line(case: str, faces: Path, place: Path, capsys: Capsys) -> None:
    command, words, says = REFUSED[case]
    shutil.copy(faces / "f.png", place)
    line = refused(capsys, command, faces, *words)
    for said in says:
        assert said in line
    assert [path.name for path in place.iterdir()] == ["f.png"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["generate", "--attributes", "Hat=1"], ("classes, no attributes",)),
        (["edit", "a.png", "--set", "Hat=1"], ("'Hat=1'", "no attributes")),
        (["edit", "a.png", "--set", "77"], ("'77'", "did you mean '7'?")),
        (["resample", "a.png", "--only", "Hat"], ("classes", "'Hat'")),
        (["interpolate", "a.png", "a.png", "--only", "Hat"], ("classes", "'Hat'")),
        (["generate", "--classes", "7", "--like", "a.png"], ("choose one",)),
    ],
)
def test_attributes_are_not_asked_of_a_model_with_classes(
    words: list[str], says: tuple[str, ...], trained_digits: Path, a: Path, place: Path, capsys: Capsys
) -> None:
    shutil.copy(a, place)
    line = refused(capsys, words[0], trained_digits, *words[1:])
    for said in says:
        assert said in line


def test_a_model_that_cannot_edit_says_what_it_can(gan: Path, place: Path, capsys: Capsys) -> None:
    Image.new("L", (16, 16)).save(place / "a.png")
    line = refused(capsys, "edit", gan, "a.png", "--set", "7")
    assert "gan model cannot edit" in line
    assert "it can sample" in line


def test_a_picture_that_fits_is_not_remarked_on(faces: Path, trained_digits: Path, a: Path, capsys: Capsys) -> None:
    assert heard(capsys, "edit", faces, faces / "f.png", "--set", "Hat=1")[1] == ""
    assert heard(capsys, "edit", trained_digits, a, "--set", "7")[1] == ""


@pytest.mark.parametrize("size", [(64, 64), (32, 40), (16, 16)])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_a_picture_of_another_size_is_scaled_and_said_so(
    mode: str, size: tuple[int, int], faces: Path, place: Path, capsys: Capsys
) -> None:
    with Image.open(faces / "f.png") as image:
        image.resize(size).convert(mode).save(place / "big.png")
    for words in (["edit", faces, "big.png", "--set", "Hat=1"], ["resample", faces, "big.png"]):
        out, err = heard(capsys, *words, "--json")
        assert err.startswith("note: big.png was brought to the model's 32 x 32 px")
        assert err.count("\n") == 1
        assert json.loads(out)["pictures"] > 0


def test_several_pictures_of_another_size_are_one_note(faces: Path, place: Path, capsys: Capsys) -> None:
    box = place / "box"
    box.mkdir()
    shutil.copy(faces / "f.png", box / "a.png")
    for name in ("b.png", "c.png", "d.png"):
        Image.new("RGB", (50, 40), "red").save(box / name)
    err = heard(capsys, "edit", faces, "box", "--set", "Hat=1", "--json")[1]
    assert err.count("\n") == 1
    assert "b.png and 2 more" in err


def test_a_picture_of_another_colour_is_said_so(
    faces: Path, trained_digits: Path, a: Path, place: Path, capsys: Capsys
) -> None:
    with Image.open(faces / "f.png") as image:
        image.convert("L").save(place / "grey.png")
    with Image.open(a) as image:
        image.convert("RGB").save(place / "colour.png")
    err = heard(capsys, "edit", faces, "grey.png", "--set", "Hat=1")[1]
    assert err.startswith("note: grey.png")
    assert "colour" in err
    err = heard(capsys, "edit", trained_digits, "colour.png", "--set", "7")[1]
    assert err.startswith("note: colour.png")
    assert "grey" in err
