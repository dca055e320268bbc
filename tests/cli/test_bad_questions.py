"""Questions that make no sense, words that are none of ours, and streams that cannot be written to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from gencaps.cli import main
from tests.cli.helpers import assert_one_line, contents, process, refused
from tests.data.helpers import write_classes, write_mnist

# --- questions that make no sense

OF_MODEL: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "no pictures of a class": ("generate", ["--n", "0"], ("n is 0", "at least 1")),
    "no styles": ("resample", ["a.png", "--n", "0"], ("n is 0", "at least 1")),
    "fewer than no styles": ("resample", ["a.png", "--n", "-3"], ("n is -3", "at least 1")),
    "a walk of one step": ("interpolate", ["a.png", "a.png", "--steps", "1"], ("steps is 1", "at least 2")),
    "no classes at all": ("classify", ["a.png", "--top", "0"], ("--top is 0", "at least 1")),
    "more than can be counted": ("generate", ["--n", "9" * 20], ("--n", "more than 10,000")),
    "a word for a number": ("generate", ["--n", "many"], ("--n", "'many' is not a whole number")),
    "a class unknown": ("generate", ["--classes", "77"], ("'77'", "did you mean '7'?")),
    "a class far off": ("generate", ["--classes", "3,seven"], ("'seven'", "known: 0, 1, 2")),
    "a negative seed": ("generate", ["--seed", "-1"], ("seed is -1", "from 0")),
    "a seed too large": ("resample", ["a.png", "--seed", "9" * 30], ("seed is 999", "from 0 to")),
    "no ending": ("generate", ["--out", "picture"], ("picture", "no ending", ".png")),
    "a wrong ending": ("generate", ["--out", "picture.txt"], ("picture.txt", "'.txt'", ".png")),
    "a wrong ending of a walk": ("interpolate", ["a.png", "a.png", "--out", "w.mov"], ("w.mov", "'.mov'", ".gif")),
    "no folder for the picture": ("generate", ["--out", "no/a.png"], ("no/a.png", "make the folder first")),
    "a file for a folder": ("generate", ["--out", "a.png/a.png"], ("a.png is not a folder", "name another")),
    "a gif below a file": ("generate", ["--out", "a.png/a.gif"], ("a.png is not a folder", "name another")),
    "the kernel's folder": ("reconstruct", ["a.png", "--out", "/proc/a.png"], ("/proc/a.png", "check the path")),
    "no such picture": ("classify", ["nowhere.png"], ("nowhere.png", "No such file", "check the path")),
    "a name of two lines": ("classify", ["no\nwhere.png"], ("no where.png", "No such file")),
    "a name too long": ("classify", ["a" * 5000], ("File name too long", "check the path")),
    "an empty folder": ("reconstruct", ["empty"], ("empty itself holds no pictures", "give another folder")),
    "a folder for a picture": ("interpolate", ["a.png", "empty"], ("empty", "Is a directory", "check the path")),
    "text for a picture": ("classify", ["text.png"], ("text.png", "is text", "replace")),
    "one picture of two": ("interpolate", ["a.png"], ("required: B", "interpolate --help")),
    "no picture": ("classify", [], ("required: PICTURE", "classify --help")),
    "a GPU that is not there": ("evaluate", ["--device", "cuda"], ("no CUDA GPU", "--device cpu")),
    "a device that is none": ("classify", ["a.png", "--device", "tpu"], ("'tpu'", "auto, cpu or cuda")),
    "a part that is none": ("evaluate", ["--part", "tset"], ("'tset'", "did you mean 'test'?")),
    "a set that is none": ("evaluate", ["--data", "digit"], ("'digit'", "did you mean 'digits'?")),
    "a set of another shape": ("evaluate", ["--data", "folder:pets"], ("(1, 8, 8)", "(3, 8, 8)", "like 'digits'")),
    "a setting of training": ("evaluate", ["--train.epochs", "3"], ("--train.epochs", "only gencaps train")),
    "an option of another command": ("evaluate", ["--seed", "3"], ("unknown option '--seed'; gencaps evaluate",)),
    "an option misspelt": ("info", ["--jsn"], ("'--jsn'", "did you mean '--json'?")),
}


@pytest.mark.parametrize("case", OF_MODEL)
def test_a_question_that_makes_no_sense_is_told_in_one_line(
    case: str, trained_digits: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, words, says = OF_MODEL[case]
    shutil.copy(trained_digits / "a.png", place)
    (place / "text.png").write_text("dear diary")
    (place / "empty").mkdir()
    write_classes(place / "pets", dict.fromkeys("0123456789", 2), size=(8, 8))
    before = contents(place)
    line = refused(capsys, command, trained_digits, *words)
    for said in says:
        assert said in line
    assert contents(place) == before


def test_a_set_with_other_classes_is_not_scored(
    trained_digits: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten kinds of clothing have the shape of ten digits, but a share of right answers would mean nothing."""
    write_mnist(place / "fashion_mnist")
    monkeypatch.setenv("GENCAPS_DATA", str(place))
    line = refused(capsys, "evaluate", trained_digits, "--data", "fashion_mnist")
    assert "knows '0' where 'fashion_mnist' has 'T-shirt/top'" in line
    assert "'digits'" in line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trian"], ("'trian'", "did you mean 'train'?")),
        (["train"], ("which paper", "gencaps train variational --out RUN")),
        (["train", "varational"], ("there is no 'varational'", "did you mean 'variational'?")),
        (["train", "variational"], ("where should the run go", "--out RUN")),
        (["train", "variational", "twice", "--out", "run"], ("unknown word 'twice'", "train variational --help")),
        (["train", "variational", "--out", "run", "--seed", "x"], ("--seed", "'x' is not a whole number", "--help")),
        (["train", "variational", "--out", "a" * 5000], ("File name too long", "check the path")),
        (["data"], ("list | get | show", "data --help")),
        (["data", "lst"], ("'lst'", "did you mean 'list'?")),
        (["data", "get", "celebra"], ("'celebra'", "did you mean 'celeba'?")),
        (["data", "get", "folder:nowhere"], ("nowhere is not a folder", "folder:PATH")),
        (["data", "show", "digits", "--out", "file/a.png"], ("file is not a folder", "name another")),
        (["data", "show", "digits", "--out", "a.txt"], ("a.txt", "'.txt' is not a picture format")),
        (["data", "show", "digits", "--size", "0"], ("0 pixels", "from 1 to 1024")),
        (["info", "nowhere"], ("'nowhere'", "give a run folder")),
        (["info", "no/where"], ("'no/where'", "gencaps[hub]")),
        (["completion", "fish"], ("'fish'", "bash, tcsh, zsh")),
    ],
)
def test_words_that_are_none_of_ours_are_told(
    words: list[str], says: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "file").write_text("in the way")
    line = refused(capsys, *words)
    for said in says:
        assert said in line
    assert contents(place) == {"file": b"in the way"}


def test_memory_that_is_not_there_is_told(
    trained_digits: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(*arguments: object, **options: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB.\nof which ...")

    monkeypatch.setattr("gencaps.api.Capsules.generate", exhausted)
    assert "not enough memory" in refused(capsys, "generate", trained_digits)


def test_a_fault_of_ours_is_not_hidden(trained_digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr("gencaps.api.Capsules.generate", broken)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        main(["generate", str(trained_digits)])


# --- what only a process of its own can show


def test_of_several_processes_one_tells_what_is_wrong(place: Path) -> None:
    done = process(
        "train",
        "variational",
        "--out",
        "run",
        "--data",
        "folder:pets",
        "--device",
        "cpu",
        "--devices",
        "2",
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 2
    assert_one_line(done.stderr)
    assert "pets is not a folder" in done.stderr
    assert not list(place.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_told() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for environment in (buffered, buffered | {"PYTHONUNBUFFERED": "1"}):
        with open("/dev/full", "w") as full:
            done = process("completion", "bash", stdout=full, env=environment)
        assert done.returncode == 2
        assert_one_line(done.stderr)
        assert "No space left" in done.stderr


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = process("completion", "bash", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_terminal_of_ascii_shows_any_name(trained_digits: Path, place: Path) -> None:
    shutil.copy(trained_digits / "a.png", place / "für.png")
    done = process("classify", str(trained_digits), "für.png", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("f\\xfcr.png  ")
