"""Settings: what is right is read, what is wrong is refused by name with the nearest right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gencaps.engine.config import coerce, field_help, parse_overrides, plain, read
from gencaps.engine.recipe import Recipe, TrainConfig, make_recipe, read_recipe
from gencaps.errors import GencapsError
from gencaps.papers.variational.config import VariationalConfig


def test_every_setting_has_its_help() -> None:
    for cls in (TrainConfig, VariationalConfig, Recipe):
        assert set(field_help(cls)) == set(cls.__dataclass_fields__), cls.__name__


def test_recipe_survives_yaml(tmp_path: Path) -> None:
    recipe = make_recipe("variational", preset="paper", data="digits", seed=7, overrides={"model": {"dim": 3}})
    assert recipe.model.dim == 3
    assert recipe.model.widths == (256, 256, 256)
    (tmp_path / "config.yaml").write_text(recipe.to_yaml())
    assert read_recipe(tmp_path / "config.yaml") == recipe


def test_overrides_are_typed() -> None:
    words = [
        "--model.dim",
        "8",
        "--train.learning-rate=1e-3",
        "--model.widths",
        "[3, 4]",
        "--train.size=null",
    ]
    assert parse_overrides(words, ("model", "train")) == {
        "model": {"dim": 8, "widths": [3, 4]},
        "train": {"learning_rate": 0.001, "size": None},
    }


def test_a_word_that_reads_as_a_number_is_still_a_word() -> None:
    overrides = parse_overrides(["--train.precision", "32"], ("model", "train"))
    assert make_recipe("variational", overrides=overrides).train.precision == "32"


def test_plain_settings_read_back_the_same() -> None:
    config = VariationalConfig(dim=5, widths=(7, 8), strides=(1, 2))
    assert read(VariationalConfig, plain(config), "model") == config


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("train", {"epochz": 3}, "unknown setting 'train.epochz' (did you mean 'epochs'?)"),
        ("model", {"margn": 3}, "unknown setting 'model.margn' (did you mean 'margin'?)"),
        ("train", {"epochs": -3}, "train.epochs is -3; it must be at least 1"),
        ("train", {"epochs": 1.5}, "train.epochs is 1.5; it must be a whole number"),
        ("train", {"epochs": True}, "train.epochs is True; it must be a whole number"),
        ("train", {"schedule": "one-cycl"}, "train.schedule is 'one-cycl' (did you mean 'one-cycle'?)"),
        ("train", {"precision": 16}, "train.precision is '16' (did you mean 'bf16'?)"),
        ("train", {"learning_rate": 0}, "train.learning_rate is 0.0; it must be above 0"),
        ("train", {"learning_rate": float("nan")}, "train.learning_rate is nan; it must be a number"),
        ("train", {"compile": "yes please"}, "train.compile is 'yes please'; it must be true or false"),
        ("train", {"size": 4}, "train.size is 4; pictures need at least 8 pixels a side"),
        ("train", {"valid": 1.0}, "train.valid is 1.0; it must be below 1"),
        ("model", {"widths": 3}, "model.widths is 3; it must be a list such as [1, 2]"),
        ("model", {"widths": ["a"]}, "model.widths is 'a'; it must be a whole number"),
    ],
)
def test_wrong_settings_are_refused_by_name(section: str, values: dict[str, object], said: str) -> None:
    with pytest.raises(GencapsError) as caught:
        make_recipe("variational", overrides={section: values})
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paper: capsule_gan\n", "config of 'capsule_gan', not of 'variational'"),
        ("papr: variational\n", "unknown setting 'papr' (did you mean 'paper'?)"),
        ("train: {epochz: 3}\n", "unknown setting 'train.epochz'"),
        ("train: 3\n", "train is 3; it must be a mapping"),
        ("- 1\n", "holds no settings"),
        ("a: [1\n", "is not valid YAML"),
        ("seed: -1\n", "seed is -1"),
        ("seed: x\n", "seed is 'x'"),
    ],
)
def test_wrong_config_files_are_refused_with_their_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(GencapsError) as caught:
        make_recipe("variational", config=path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "seed" in said or str(path) in str(caught.value)


def test_unknown_names_offer_the_nearest() -> None:
    with pytest.raises(GencapsError, match="did you mean 'variational'"):
        make_recipe("variatonal")
    with pytest.raises(GencapsError, match="did you mean 'paper'"):
        make_recipe("variational", preset="papr")
    with pytest.raises(GencapsError, match="choose one"):
        make_recipe("variational", preset="small", config=Path("x.yaml"))
    with pytest.raises(GencapsError, match="there is no file"):
        make_recipe("variational", config=Path("nowhere.yaml"))


def test_whole_numbers_widen_to_numbers_but_not_back() -> None:
    assert coerce(3, float, "x") == 3.0
    with pytest.raises(GencapsError):
        coerce(3.0, int, "x")
    assert coerce(None, int | None, "x") is None
    assert coerce(3, int | None, "x") == 3
