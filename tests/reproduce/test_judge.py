"""The judge: one for each recipe and data, trained once, and as trustworthy as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gencaps.data.images import ImageSet, Splits
from gencaps.engine.evaluate import pixels
from gencaps.engine.recipe import presets
from gencaps.engine.train import Trained, load_splits
from gencaps.reproduce import judge as judge_module
from gencaps.reproduce.judge import Judge, accuracies, as_judge, get_judge, judge_path, judge_recipe

DIGITS = judge_recipe("digits", smoke=True)
FACES = judge_recipe("faces:60", size=32, smoke=True)


@pytest.fixture(scope="module")
def judge(resnet: Trained) -> Judge:
    return as_judge(resnet)


@pytest.fixture(scope="module")
def of_faces(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    with torch.no_grad():  # as a measure would ask for it
        return get_judge(FACES, folder=tmp_path_factory.mktemp("judges") / "deep", device="cpu", quiet=True)


def test_each_set_has_its_own_preset_or_the_small_one() -> None:
    assert {"mnist", "fashion_mnist", "cifar10", "celeba", "faces"} <= set(presets("resnet"))
    assert judge_recipe("mnist").model != judge_recipe("digits").model
    assert judge_recipe("mnist").data == "mnist"
    assert judge_recipe("mnist", size=40).train.size == 40
    # a size that is the set's own makes no other judge
    assert judge_recipe("mnist", size=28) == judge_recipe("mnist")
    assert judge_recipe("faces", size=64) == judge_recipe("faces")
    assert judge_recipe("celeba", size=64) == judge_recipe("celeba")
    for data in ("mnist", "fashion_mnist", "cifar10", "faces", "digits"):
        assert judge_recipe(data).train.valid == 0.0  # all of the training part
        assert judge_recipe(data, smoke=True).train.epochs == 1
    assert judge_recipe("digits").train.epochs > 1


def test_a_judge_lies_where_its_recipe_and_its_data_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = judge_path(DIGITS, tmp_path)
    assert path.parent == tmp_path
    assert path.name.startswith("digits-")
    assert judge_path(DIGITS, tmp_path) == path
    others = [judge_recipe("digits"), judge_recipe("digits", seed=1, smoke=True), FACES]
    assert len({judge_path(recipe, tmp_path).name for recipe in [DIGITS, *others]}) == 4
    assert judge_path(DIGITS) == tmp_path / "cache" / "judges" / path.name

    def changed(recipe: object) -> Splits:
        splits = load_splits(DIGITS)
        x = splits.train.x.clone()
        x[0, 0, 0, 0] ^= 1
        return splits._replace(train=ImageSet(splits.train.name, x, splits.train.y, splits.train.names))

    monkeypatch.setattr(judge_module, "load_splits", changed)
    assert judge_path(DIGITS, tmp_path) != path


def test_a_judge_is_trained_once(of_faces: Judge) -> None:
    weights = sorted(of_faces.path.glob("*.safetensors"))
    assert weights
    before = [path.stat().st_mtime_ns for path in weights]
    again = get_judge(FACES, folder=of_faces.path.parent, device="cpu", quiet=True)
    assert [path.stat().st_mtime_ns for path in weights] == before
    assert again.path == of_faces.path == judge_path(FACES, of_faces.path.parent)
    assert again.accuracy == of_faces.accuracy
    x = load_splits(FACES).test.x
    torch.testing.assert_close(again.look(x).features, of_faces.look(x).features)


def test_a_judge_says_how_far_it_can_be_trusted(judge: Judge, resnet: Trained) -> None:
    test = resnet.splits.test
    right = (judge.look(test.x).label == test.y).double().mean().item()
    assert 0.5 < right < 1  # one epoch tells most digits
    assert judge.accuracy == judge.least == pytest.approx(right, abs=1e-6)
    assert judge.note == f"the judge reads {100 * right:.2f} % of real digits test pictures right"


def test_a_judge_of_attributes_names_the_worst(of_faces: Judge) -> None:
    test = load_splits(FACES).test
    each = (of_faces.look(test.x).label == test.y).double().mean(0)
    torch.testing.assert_close(accuracies(of_faces.model, test), each)
    assert of_faces.accuracy == pytest.approx(each.mean().item())
    assert of_faces.least == pytest.approx(each.min().item())
    assert of_faces.least < of_faces.accuracy
    assert f"{100 * of_faces.accuracy:.2f} %" in of_faces.note
    assert f"(worst attribute {100 * of_faces.least:.2f} %)" in of_faces.note
    assert "faces:60" in of_faces.note


def test_what_a_judge_sees_in_classes(judge: Judge, resnet: Trained) -> None:
    x = resnet.splits.test.x[:7]
    seen = judge.look(x)
    assert seen.features.shape[0] == 7
    assert seen.features.ndim == 2
    assert seen.presence.shape == (7, 10)
    torch.testing.assert_close(seen.presence.sum(1), torch.ones(7))
    assert torch.equal(seen.label, seen.presence.argmax(1))
    with torch.no_grad():
        torch.testing.assert_close(judge.model.head(seen.features).softmax(1), seen.presence)
    assert not seen.features.requires_grad


def test_what_a_judge_sees_in_attributes(of_faces: Judge) -> None:
    test = load_splits(FACES).test
    seen = of_faces.look(test.x)
    assert seen.presence.shape == seen.label.shape == test.y.shape
    assert torch.equal(seen.label, (seen.presence > 0.5).long())
    assert set(seen.label.unique().tolist()) <= {0, 1}


def test_bytes_and_numbers_are_the_same_pictures(judge: Judge, resnet: Trained) -> None:
    x = resnet.splits.test.x
    for a, b in zip(judge.look(x), judge.look(pixels(x)), strict=True):
        torch.testing.assert_close(a, b)


def test_many_pictures_are_seen_as_each_is_alone(
    judge: Judge, resnet: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = resnet.splits.test.x[:9]
    whole = judge.look(x)
    monkeypatch.setattr(judge_module, "BATCH", 2)
    for a, b in zip(whole, judge.look(x), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
