"""Every wrong word, file and place that a user can give: one line that names it and a remedy, exit code 2."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gencaps.cli import main
from tests.cli.helpers import TINY, contents, refused
from tests.data.helpers import encoded, idx, picture, png, rng, write_classes, write_mnist
from tests.data.test_bad_input import corrupt_member, edit_mnist, empty_class, one_class, pets, regzip

TRAIN = ["train", "variational", "--out", "run"]
IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def yaml(content: str | bytes) -> Callable[[Path], object]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda here: (here / "mine.yaml").write_bytes(data)


def tall_mnist(here: Path) -> None:
    write_mnist(here / "mnist")
    for part, n in (("train", 20), ("t10k", 10)):
        pixels = rng().integers(0, 256, (n, 9, 12))
        (here / "mnist" / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels)))


def one_picture_each(here: Path) -> None:
    write_classes(here / "pets", {"cat": 1, "dog": 1})


def nothing(here: Path) -> None:
    pass


MNIST, PETS, CELEBA = ["--data", "mnist"], ["--data", "folder:pets"], ["--data", "celeba", "--train.size", "8"]
MINE = ["--config", "mine.yaml"]
# what is on the disk, the words after "gencaps train variational --out run", and what the one line must say
NOT_TRAINED: dict[str, tuple[Callable[[Path], object], list[str], tuple[str, ...]]] = {
    # the list: data
    "truncated IDX": (edit_mnist(IMAGES, lambda d: d[:-7], packed=False), MNIST, (IMAGES, "data get mnist")),
    "wrong-magic IDX": (
        edit_mnist(IMAGES, regzip(lambda d: b"\0\0\x0d\3" + d[4:])),
        MNIST,
        (IMAGES, "0x0d03", "data get mnist"),
    ),
    "counts differ": (
        edit_mnist(LABELS, lambda d: gzip.compress(idx(rng().integers(0, 9, 19)))),
        MNIST,
        (IMAGES, "20 pictures", LABELS, "19 labels", "data get mnist"),
    ),
    "corrupt zip member": (corrupt_member, CELEBA, ("img_1.zip", "000004.jpg", "get it again")),
    "one class": (one_class, PETS, ("pets", "one class only (cat)", "two or more are needed")),
    "an empty class": (empty_class, PETS, ("elk", "no pictures", "remove the folder")),
    "text named .png": (pets(bad_png=b"dear diary\n"), PETS, ("bad.png", "is text", "replace or remove")),
    "0 x 0": (pets(bad_png=png(0, 0, 8, 2, b"")), PETS, ("bad.png", "0 x 0", "replace or remove")),
    # the list: settings
    "an unknown setting": (nothing, ["--train.epoch", "5"], ("train.epoch", "did you mean 'epochs'?")),
    "an unknown config key": (yaml("train: {epoch: 5}"), MINE, ("mine.yaml", "epoch", "did you mean 'epochs'?")),
    "a negative epoch count": (nothing, ["--train.epochs", "-5"], ("train.epochs is -5", "at least 1")),
    "a negative epoch count in a config": (yaml("train: {epochs: -5}"), MINE, ("mine.yaml", "-5", "at least 1")),
    "a config of another model": (yaml("paper: capsule_gan"), MINE, ("mine.yaml", "'capsule_gan'", "variational")),
    "a missing GPU": (nothing, ["--device", "cuda"], ("no CUDA GPU", "--device cpu")),
    # other data
    "no such data": (nothing, ["--data", "digit"], ("'digit'", "did you mean 'digits'?")),
    "no such folder": (nothing, PETS, ("pets is not a folder", "folder:PATH")),
    "the home of nobody": (nothing, ["--data", "folder:~nobody-at-all/x"], ("nobody-at-all", "folder:PATH")),
    "pictures that are not square": (tall_mnist, MNIST, ("'mnist'", "9 x 12", "--train.size 9")),
    "nothing left to test on": (one_picture_each, PETS, ("folder:pets", "no pictures to test on", "add some")),
    # other settings
    "a setting without a value": (nothing, ["--model.dim", "--data", "digits"], ("--model.dim needs a value",)),
    "an option in place of a setting": (nothing, ["--epochs", "3"], ("'--epochs'", "'--train.epochs'?")),
    "a date for a number": (nothing, ["--train.epochs", "2001-99-99"], ("'2001-99-99'", "a whole number")),
    "a thousand brackets": (nothing, ["--train.epochs", "[" * 1000], ("train.epochs", "a whole number")),
    "a date in a config": (yaml("data: 2001-99-99"), MINE, ("mine.yaml is not valid YAML",)),
    "a number for a key": (yaml("1: 2"), MINE, ("mine.yaml", "unknown setting '1'")),
    "a wrong seed in a config": (yaml("seed: x"), MINE, ("mine.yaml", "seed is 'x'", "whole number")),
    "no such config": (nothing, MINE, ("no file mine.yaml", "give the path")),
    "a folder for a config": (nothing, ["--config", "."], ("cannot read .", "give the path")),
    "bytes for a config": (yaml(b"\xff"), MINE, ("mine.yaml", "UTF-8", "give the path")),
    "preset and config": (nothing, ["--preset", "small", *MINE], ("'small'", "mine.yaml", "choose one")),
    "no such preset": (nothing, ["--preset", "smal"], ("'smal'", "did you mean 'small'?")),
    "no device": (nothing, ["--devices", "0"], ("--devices is 0", "at least 1")),
    "half precision on a CPU": (nothing, ["--train.precision", "bf16"], ("bf16", "use 32 or auto")),
    "a negative seed": (nothing, ["--seed", "-1"], ("seed is -1", "from 0 up")),
    "a rate beyond float32": (nothing, ["--train.learning_rate", "1e300"], ("learning_rate is 1e+300", "at most")),
    "a batch of one": (nothing, ["--train.batch", "1"], ("train.batch is 1", "raise train.batch")),
    "more weights than memory": (
        nothing,
        ["--model.widths", "[100000000]", "--model.strides", "[1]"],
        ("GiB of memory", "smaller"),
    ),
    "more weights than numbers": (nothing, ["--model.dim", "1" * 20], ("more weights", "make it smaller")),
}


@pytest.mark.parametrize("case", NOT_TRAINED)
def test_what_cannot_be_trained_is_told_in_one_line_and_leaves_nothing(
    case: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make, words, says = NOT_TRAINED[case]
    make(place)
    monkeypatch.setenv("GENCAPS_DATA", str(place))
    before = contents(place)
    line = refused(capsys, *TRAIN, *words)
    for said in says:
        assert said in line
    assert contents(place) == before
    assert not Path("run").exists()
    assert not list(tmp_path.rglob("*.part"))  # good pictures may be kept decoded, but whole


def animated(here: Path) -> None:
    pets()(here)
    picture().save(here / "pets" / "dog" / "odd.gif", save_all=True, append_images=[picture(1)])


DEEP = png(40, 40, 16, 0, (b"\0" + struct.pack(">40H", *range(0, 60000, 1500))) * 40)
CONVERTED = {
    "CMYK": (pets(odd_jpg=encoded(picture(mode="CMYK"))), "CMYK converted to RGB", "odd.jpg"),
    "16-bit": (pets(odd_png=DEEP), "16 bits a channel scaled to 8", "odd.png"),
    "animated": (animated, "animated or many pages: the first taken", "odd.gif"),
}


@pytest.mark.parametrize("case", CONVERTED)
def test_an_odd_picture_is_converted_and_both_show_and_train_say_so(
    case: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, says, file = CONVERTED[case]
    make(place)
    assert main(["data", "show", "folder:pets"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert main([*TRAIN, *PETS, "--no-report", *TINY]) == 0
    said = capsys.readouterr().err
    for text in (shown, said):
        assert f"note: 1 x {says}" in text
    assert file in said


# places that cannot be written to, whoever asks: below a file, and in the kernel's own folder
PLACES = ["file/run", *(["/proc/run"] if os.path.isdir("/proc") else [])]


@pytest.mark.parametrize("out", PLACES)
def test_a_run_folder_that_cannot_be_made_is_told(out: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file").write_text("in the way")
    line = refused(capsys, "train", "variational", "--out", out, *TINY)
    assert f"cannot make the folder {out}" in line
    assert "check the path" in line
    assert contents(place) == {"file": b"in the way"}


def test_a_read_only_folder_asks_for_another(
    place: Path, trained_digits: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Root may write anywhere, so the kernel's refusal is played."""

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        line = refused(capsys, *TRAIN, *TINY)
    assert "cannot make the folder run: Read-only file system; choose a folder that you may write to" in line
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.NamedTemporaryFile", refuse)
        line = refused(capsys, "generate", trained_digits, "--out", "a.png")
    assert "cannot write a.png: Read-only file system; choose a folder that you may write to" in line
    assert contents(place) == {}


def test_a_disk_that_is_full_from_the_start_leaves_no_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # any larger file fails as on a full disk
    try:
        line = refused(capsys, *TRAIN, *TINY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "config.yaml" in line
    assert "free some space" in line
    assert not list(place.iterdir())


def test_a_used_folder_is_never_written_over(
    stopped: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(place)
    monkeypatch.setattr("gencaps.data.load", lambda *a, **o: pytest.fail("data was loaded for a run that cannot be"))
    line = refused(capsys, "train", "variational", "--out", stopped)
    assert f"{stopped} exists already: gencaps train --resume {stopped} goes on with it, or" in line
    (place / "notes.txt").write_text("mine")
    assert "notes.txt exists already: choose another --out" in refused(
        capsys, "train", "variational", "--out", "notes.txt"
    )
    assert contents(place) == before | {"notes.txt": b"mine"}


def test_a_nan_ends_with_step_and_term_and_a_folder_that_can_be_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*TRAIN, "--quiet", "--no-report", *TINY, "--train.learning_rate", "1e30"]
    for command in (words, ["train", "--resume", "run", "--quiet"]):  # as it was started, it goes wrong again
        line = refused(capsys, *command)
        assert "the loss term 'loss' is nan" in line
        assert "step 1:" in line
        assert "smaller --train.learning_rate" in line
    assert (Path("run") / "config.yaml").is_file()
    assert not (Path("run") / "model.safetensors").exists()
