"""What each command gives a user who does everything right."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from safetensors.torch import load_file

from gencaps import __version__
from gencaps.cli import main
from gencaps.cli.answer import with_doubt
from gencaps.data import loading
from gencaps.engine.run import Run
from tests.cli.helpers import TINY, ask, contents
from tests.data.helpers import write_classes
from tests.engine.helpers import same

DIGITS = list("0123456789")


def opened(path: str | Path) -> Image.Image:
    """Opens a picture and decodes all of it."""
    with Image.open(path) as image:
        image.load()
        return image.copy()


# --- train


def test_train_leaves_a_whole_run_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "variational", "--data", "digits", "--seed", "3", "--out", "deep/run"]
    assert main([*words, *TINY]) == 0
    said = capsys.readouterr()
    assert [line.partition(" ")[0] for line in said.out.splitlines()] == ["test", "report:", "model:"]
    assert said.out.endswith("report: deep/run/report.html\nmodel:  deep/run\n")
    assert "epoch 1/1  loss" in said.err
    assert "images/s" in said.err

    run = Path("deep/run")
    found = {path.name for path in run.iterdir()}
    assert found == {
        "config.json",
        "config.yaml",
        "evaluation.json",
        "facts.json",
        "metrics.jsonl",
        "model.safetensors",
        "report.html",
        "samples",
        "state.pt",
        "tensorboard",
    }
    recipe = Run.open(run).recipe
    assert (recipe.seed, recipe.data, recipe.train.epochs, recipe.model.widths) == (3, "digits", 1, (8,))
    for picture in ("all_0001_generated.png", "all_0001_reconstructed.png"):
        assert min(opened(run / "samples" / picture).size) > 100
    assert {row["split"] for row in Run.open(run).rows()} == {"train", "valid"}
    assert Run.open(run).facts()["split"]["test"]["pictures"] == 359


def test_quiet_prints_nothing_and_no_report_writes_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "variational", "--out", "run", "--quiet", "--no-report", *TINY]) == 0
    assert capsys.readouterr() == ("", "")
    assert not (Path("run") / "report.html").exists()
    assert (Path("run") / "evaluation.json").exists()


def test_a_run_s_config_trains_the_same_model_again_and_options_go_over_it() -> None:
    quiet = ["--quiet", "--no-report"]
    assert main(["train", "variational", "--out", "first", "--seed", "5", *TINY, *quiet]) == 0
    for out, more in (("again", []), ("other", ["--seed", "6"])):
        words = ["train", "variational", "--config", "first/config.yaml", "--out", out]
        assert main([*words, *more, *quiet]) == 0
    first, again, other = (load_file(f"{name}/model.safetensors") for name in ("first", "again", "other"))
    assert same(first, again)
    assert not same(first, other)
    assert Path("first/config.yaml").read_text() == Path("again/config.yaml").read_text()


def test_train_takes_a_folder_of_pictures_and_every_question_works_on_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_classes(place / "pets", {"cat": 5, "dog": 5})
    assert main(["train", "variational", "--data", "folder:pets", "--out", "run", *TINY]) == 0
    seen = json.loads(ask(capsys, "evaluate", "run", "--json"))
    assert (seen["images"], seen["data"]) == (2, "folder:pets")
    (answer,) = json.loads(ask(capsys, "classify", "run", "pets/cat/000.png", "--json"))
    assert list(answer["presence"]) == ["cat", "dog"]
    ask(capsys, "generate", "run", "--classes", "dog", "--out", "dogs.png")
    assert opened("dogs.png").mode == "RGB"


def test_data_that_has_changed_since_is_noted_when_it_is_scored(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_classes(place / "pets", {"cat": 5, "dog": 5})
    assert main(["train", "variational", "--data", "folder:pets", "--out", "run", "--no-report", *TINY]) == 0
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 0
    assert capsys.readouterr().err == ""
    shutil.copy("pets/cat/000.png", "pets/cat/100.png")
    assert main(["evaluate", "run", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("note: the data 'folder:pets' has changed since run was trained")
    assert json.loads(said.out)["images"] >= 2


# --- evaluate


def test_evaluate_gives_the_figures_that_training_wrote_down(
    trained_digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = json.loads(ask(capsys, "evaluate", trained_digits, "--json"))
    assert {"accuracy", "error_percent", "seconds", "images", "mse", "correct", "data", "part", "model"} <= seen.keys()
    assert seen["images"] == 359
    assert seen["accuracy"] == seen["correct"] / 359
    assert seen["error_percent"] == pytest.approx(100 * (1 - seen["accuracy"]))
    assert seen["accuracy"] > 0.5  # chance is 0.1
    assert seen["seconds"] > 0
    written = json.loads((trained_digits / "evaluation.json").read_text())
    assert {k: v for k, v in written.items() if k != "seconds"} == {k: seen[k] for k in written if k != "seconds"}

    text = ask(capsys, "evaluate", trained_digits)
    assert f"accuracy {100 * seen['accuracy']:.2f} %   error {seen['error_percent']:.2f} %" in text
    assert "359 pictures" in text


def test_evaluate_takes_other_parts_and_other_data(trained_digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {}
    for part in ("train", "valid", "test"):
        sizes[part] = json.loads(ask(capsys, "evaluate", trained_digits, "--part", part, "--json"))["images"]
    assert sum(sizes.values()) == 1797
    given = json.loads(ask(capsys, "evaluate", trained_digits, "--data", "digits", "--json"))
    assert given["images"] == 359


def test_a_model_folder_without_its_run_answers_alike(
    trained_digits: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(trained_digits / name, place / "model")
    one, two = (json.loads(ask(capsys, "evaluate", path, "--json")) for path in (trained_digits, "model"))
    assert one["accuracy"] == two["accuracy"]


# --- classify


def test_classify_names_each_picture(trained_digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = trained_digits / "a.png", trained_digits / "b.png"
    rows = json.loads(ask(capsys, "classify", trained_digits, a, b, "--json"))
    assert [row["picture"] for row in rows] == [str(a), str(b)]
    for row in rows:
        assert list(row["presence"]) == DIGITS
        assert sum(row["presence"].values()) == pytest.approx(1.0, abs=1e-5)
        assert row["label"] == max(row["presence"], key=row["presence"].__getitem__)

    lines = ask(capsys, "classify", trained_digits, a, b).splitlines()
    assert [line.split()[:2] for line in lines] == [[str(row["picture"]), row["label"]] for row in rows]
    assert [line.count("%") for line in lines] == [3, 3]
    assert ask(capsys, "classify", trained_digits, a, "--top", "1").count("%") == 1
    assert ask(capsys, "classify", trained_digits, a, "--top", "99").count("%") == 10


def test_classify_says_first_that_a_picture_shows_nothing_known() -> None:
    assert with_doubt("8 99.0 %", 0.09) == "8 99.0 %"
    assert with_doubt("8 99.0 %", 0.3) == "8 99.0 %  (none of these: 30 %)"
    assert with_doubt("8 99.0 %", 0.94) == "none of these (94 %); were it one:  8 99.0 %"


def test_classify_takes_folders_and_passes_over_what_is_hidden(
    trained_digits: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "box").mkdir()
    for name in ("b.png", "a.png"):
        shutil.copy(trained_digits / name, place / "box")
    (place / "box" / "._a.png").write_bytes(b"what a Mac leaves behind")
    (place / "box" / "notes.txt").write_text("not a picture")
    rows = json.loads(ask(capsys, "classify", trained_digits, "box", "--json"))
    assert [row["picture"] for row in rows] == ["box/a.png", "box/b.png"]


def test_invert_swaps_dark_and_light(trained_digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ImageChops.invert(opened(trained_digits / "a.png")).save("ink.png")
    words = ["classify", trained_digits, "--json"]
    (plain,) = json.loads(ask(capsys, *words, trained_digits / "a.png"))
    (inverted,) = json.loads(ask(capsys, *words, "ink.png", "--invert"))
    assert inverted["presence"] == pytest.approx(plain["presence"], abs=1e-4)
    (wrong,) = json.loads(ask(capsys, *words, "ink.png"))
    assert wrong["presence"] != pytest.approx(plain["presence"], abs=1e-4)


# --- pictures that are painted

A, B = "A", "B"
# the words after MODEL, how many pictures come of them, in how many columns, and the labels where they are known
PAINTED: dict[str, tuple[list[str], int, int, list[str] | None]] = {
    "generate": (["--classes", "3,8", "--n", "4"], 8, 4, ["3", "8"]),
    "resample": ([A, B, "--n", "5"], 10, 5, None),
    "reconstruct": ([A, B, "--sample"], 4, 2, None),
    "interpolate": ([A, B, "--steps", "6"], 6, 6, None),
}


def words_of(command: str, model: Path, *more: str | Path) -> list[str | Path]:
    pictures = {A: model / "a.png", B: model / "b.png"}
    return [command, model, *(pictures.get(word, word) for word in PAINTED[command][0]), *more]


@pytest.mark.parametrize("command", PAINTED)
def test_a_painting_command_says_what_it_painted_and_writes_it(
    command: str, trained_digits: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, pictures, columns, labels = PAINTED[command]
    said = json.loads(ask(capsys, *words_of(command, trained_digits, "--json", "--out", "painted.png")))
    assert (said["pictures"], said["columns"], said["out"]) == (pictures, columns, "painted.png")
    assert len(said["labels"]) == pictures // columns
    assert labels is None or said["labels"] == labels
    assert set("".join(said["labels"])) <= set("0123456789 to")
    image = opened("painted.png")
    # pictures of 8 px are enlarged 8 times and stand 2 px apart, with the labels to their left
    assert image.height == pictures // columns * 66 + 2
    assert image.width > columns * 66 + 2
    assert len(set(image.convert("L").tobytes())) > 20  # something is painted
    assert set(contents(place)) == {"painted.png"}

    text = ask(capsys, *words_of(command, trained_digits, "--out", "painted.png"))
    assert text == f"wrote painted.png: {', '.join(said['labels'])}\n"
    silent = json.loads(ask(capsys, *words_of(command, trained_digits, "--json")))
    assert silent == said | {"out": None}


@pytest.mark.parametrize("command", PAINTED)
def test_without_out_the_pictures_are_drawn_in_the_terminal(
    command: str, trained_digits: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ask(capsys, *words_of(command, trained_digits)).splitlines()
    _, pictures, columns, _ = PAINTED[command]
    # half a line a pixel, and one empty line between two rows
    assert len(lines) == pictures // columns * 5 - 1
    assert max(map(len, lines)) == columns * 9 - 1
    assert set("".join(lines)) <= set(" .:-=+*#%@")
    assert contents(place) == {}


@pytest.mark.parametrize("command", ["generate", "resample", "reconstruct"])
def test_same_seed_same_picture_and_other_seed_another(
    command: str, trained_digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, seed in (("one.png", "7"), ("same.png", "7"), ("other.png", "8")):
        ask(capsys, *words_of(command, trained_digits, "--seed", seed, "--out", out))
    one, same_, other = (Path(name).read_bytes() for name in ("one.png", "same.png", "other.png"))
    assert one == same_
    assert one != other


@pytest.mark.parametrize("command", PAINTED)
def test_a_gif_moves_through_the_pictures(
    command: str, trained_digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, *words_of(command, trained_digits, "--out", "walk.gif"))
    with Image.open("walk.gif") as image:
        assert image.format == "GIF"
        assert 2 <= getattr(image, "n_frames", 1) <= PAINTED[command][1]  # equal neighbours are one frame
        assert image.size == (64, 64)


@pytest.mark.parametrize("name", ["a.jpg", "a.webp", "a.bmp", "A.PNG"])
def test_a_picture_is_written_in_the_format_of_its_name(
    name: str, trained_digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, "generate", trained_digits, "--n", "1", "--classes", "0", "--out", name)
    with Image.open(name) as image:
        assert image.format == {".jpg": "JPEG"}.get(Path(name).suffix, Path(name).suffix[1:].upper())


def test_generate_paints_every_class_unless_told(trained_digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(ask(capsys, "generate", trained_digits, "--json"))
    assert said == {"labels": DIGITS, "columns": 8, "pictures": 80, "seed": 0, "out": None}


def test_reconstruct_tells_how_far_off_it_is(trained_digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reconstruct", trained_digits, trained_digits / "a.png", "--json"]
    plain = json.loads(ask(capsys, *words))
    assert 0 < plain["mse"] < 0.1  # a grey picture of the mean would be near 0.14
    assert plain == json.loads(ask(capsys, *words, "--seed", "5"))  # no noise without --sample
    assert plain["mse"] != json.loads(ask(capsys, *words, "--sample"))["mse"]


def test_interpolation_is_named_by_its_ends(trained_digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = trained_digits / "a.png", trained_digits / "b.png"
    seen = [row["label"] for row in json.loads(ask(capsys, "classify", trained_digits, a, b, "--json"))]
    said = json.loads(ask(capsys, "interpolate", trained_digits, a, b, "--json"))
    assert (said["labels"], said["pictures"]) == ([f"{seen[0]} to {seen[1]}"], 8)


# --- data, info, completion, help


def test_data_list_names_every_set_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(ask(capsys, "data", "list", "--json"))
    assert [row["name"] for row in rows] == list(loading.READERS)
    assert {row["name"] for row in rows if row["here"]} == {"digits", "faces"}
    table = ask(capsys, "data", "list")
    for row in rows:
        assert row["name"] in table
    assert "gencaps data get mnist" in table


def test_data_show_writes_a_sheet_and_counts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = ask(capsys, "data", "show", "digits", "--out", "digits.png", "--n", "20")
    assert opened("digits.png").width > 10 * 96
    assert "1,438" in said
    assert "359" in said
    assert "sheet in digits.png" in said
    ask(capsys, "data", "show", "digits", "--n", "5")
    assert set(contents(place)) == {"digits.png", "sheet.png"}
    assert ask(capsys, "data", "get", "digits") == "digits needs no files\n"


def test_info_says_what_is_here_and_what_a_model_can_do(
    trained_digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = json.loads(ask(capsys, "info", "--json"))
    assert here["gencaps"] == __version__
    assert {"torch", "python", "device"} <= here.keys()
    assert {"small", "paper"} <= here["presets of variational"].keys()
    text = ask(capsys, "info")
    assert here["torch"] in text
    assert here["presets of variational"]["small"] in text

    model = json.loads(ask(capsys, "info", trained_digits, "--json"))
    assert (model["paper"], model["data"], model["classes"], model["seed"]) == ("variational", "digits", DIGITS, 0)
    assert {"classify", "reconstruct", "generate", "resample", "interpolate"} <= set(model["can"])
    assert model["parameters"] == sum(
        tensor.numel()
        for name, tensor in load_file(trained_digits / "model.safetensors").items()
        if name.endswith(("weight", "bias"))
    )
    assert "0, 1, 2, 3" in ask(capsys, "info", trained_digits)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = ask(capsys, "completion", shell)
    for command in ("train", "evaluate", "classify", "generate", "reconstruct", "interpolate", "data", "info"):
        assert command in script
    if shell == "bash" and shutil.which("bash"):
        assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_help_and_version_are_answers(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (["--version"], [f"gencaps {__version__}"]),
        (["--help"], ["train", "evaluate", "classify", "generate", "Start with: gencaps train variational"]),
        (["train", "--help"], ["--resume", "train variational --help lists every setting"]),
        (["train", "variational", "--help"], ["--preset small", "--model.dim", "--train.learning_rate"]),
        (["evaluate", "--help"], ["--part", "--json"]),
        (["data", "show", "--help"], ["--out", "--n"]),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        said = capsys.readouterr().out
        for text in says:
            assert text in said


def test_no_words_at_all_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 0
    assert "classify" in capsys.readouterr().out


def test_help_of_a_paper_shows_what_a_preset_gives(capsys: pytest.CaptureFixture[str]) -> None:
    """Not the defaults of the dataclass, which no command ever uses as they are."""
    for words, dim, epochs in ((["--help"], 8, 100), (["--preset", "paper", "--help"], 16, 40)):
        with pytest.raises(SystemExit):
            main(["train", "variational", *words])
        said = capsys.readouterr().out
        assert f"--model.dim              Numbers in a capsule. ({dim})" in said
        assert f"does not set its own. ({epochs})" in " ".join(said.split())
        assert "one of least-kl, labels" in " ".join(said.split())


def test_a_folder_given_as_data_is_offered_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "variational", "--data", str(tmp_path), "--out", str(tmp_path / "run")]) == 2
    assert f"did you mean 'folder:{tmp_path}'?" in capsys.readouterr().err
