from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from gencaps.cli.data import add_parser
from gencaps.data import catalog, loading
from gencaps.errors import GencapsError
from tests.data.helpers import picture, write_classes, write_mnist


def run(*words: str) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["data", *words])
    args.run(args)


def test_list_names_every_set(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch) -> None:
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("GENCAPS_DATA", str(tmp_path))
    run("list")
    table = capsys.readouterr().out
    for name in loading.READERS:
        assert name in table
    assert "not here: gencaps data get cifar10" in table
    run("list", "--json")
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(loading.READERS)
    assert {row["name"] for row in rows if row["here"]} == {
        "digits",
        "faces",
        "mnist",
        "affnist",
        "mnist_to_affnist",
        "multimnist",
    }


def test_get_says_where_a_set_is(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch) -> None:
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("GENCAPS_DATA", str(tmp_path))
    run("get", "mnist")
    run("get", "digits")
    assert capsys.readouterr().out.splitlines() == [
        f"mnist is in {tmp_path / 'mnist'}",
        "digits needs no files",
    ]
    with pytest.raises(GencapsError, match="did you mean 'celeba'"):
        run("get", "celebra")


def test_show_writes_a_sheet_and_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "deep" / "sheet.png"
    out.parent.mkdir()
    run("show", "digits", "--out", str(out), "--n", "20", "--size", "16")
    with Image.open(out) as sheet:
        # ten classes in columns of 96 + 6, two rows of 96 + 6 + 13
        assert sheet.size == (10 * 102 + 6, 2 * 115 + 6)
        assert sheet.getpixel((1, 1)) == (255, 255, 255)
    printed = capsys.readouterr().out
    assert "1,438" in printed
    assert "359" in printed
    assert str(out) in printed.replace("\n", "")
    assert [path.name for path in out.parent.iterdir()] == ["sheet.png"]


def test_show_tells_what_was_converted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_classes(tmp_path / "pets", {"cat": 3, "dog": 3})
    picture(mode="CMYK").save(tmp_path / "pets" / "cat" / "odd.jpg")
    run("show", f"folder:{tmp_path / 'pets'}", "--out", str(tmp_path / "sheet.png"))
    assert "note: 1 x CMYK converted to RGB" in capsys.readouterr().out


def test_show_writes_attributes_below_faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "FACES", (9, 3))
    run("show", "faces", "--out", str(tmp_path / "sheet.png"), "--n", "4")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (2 * (128 + 6) + 6, 2 * (128 + 6 + 5 * 13) + 6)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--out", "sheet.txt"], "'.txt' is not a picture format"),
        (["--n", "0"], "at least 1 picture"),
        (["--size", "-3"], "-3 pixels"),
    ],
)
def test_show_refuses_what_it_cannot_do(words: list[str], says: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GencapsError, match=says):
        run("show", "digits", *words)
    assert not list(tmp_path.glob("*.*"))


def test_show_to_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(GencapsError, match=r"cannot write .*file is not a folder; name another"):
        run("show", "digits", "--out", str(tmp_path / "file" / "sheet.png"))


def test_the_parser_imports_nothing_heavy() -> None:
    code = (
        "import argparse, sys; from gencaps.cli.data import add_parser;"
        "add_parser(argparse.ArgumentParser().add_subparsers());"
        "assert not {'torch', 'numpy', 'PIL', 'rich', 'sklearn'} & set(sys.modules), sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
