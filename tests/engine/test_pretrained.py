"""A model folder: what is saved comes back, and what was changed or is foreign is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gencaps.engine.pretrained import checksum, from_pretrained, save_pretrained, save_weights
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo, Step
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.primitives.noise import Noise


@pytest.fixture
def model() -> VariationalCapsules:
    config = VariationalConfig(4, (8,), (2,), decoder=(16,))
    return VariationalCapsules(config, PictureInfo(1, 8, ("a", "b"), data="mine")).eval()


@pytest.fixture
def folder(model: VariationalCapsules, tmp_path: Path) -> Path:
    return save_pretrained(model, tmp_path / "model")


def test_a_saved_model_comes_back_the_same(model: VariationalCapsules, folder: Path) -> None:
    again = from_pretrained(folder)
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "README.md"}
    x = torch.rand(3, 1, 8, 8)
    assert isinstance(again, VariationalCapsules)
    assert again.pictures == model.pictures
    assert again.config == model.config
    assert torch.equal(again.classify(x).presence, model.classify(x).presence)
    assert not again.training


def test_card_says_what_the_model_is(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    assert "8 x 8, grey" in card
    assert "a, b" in card
    assert "classify" in card


def test_checksum_sees_names_types_shapes_and_numbers() -> None:
    base = {"w": torch.arange(6.0)}
    others = [
        {"v": torch.arange(6.0)},
        {"w": torch.arange(6.0).double()},
        {"w": torch.arange(6.0).reshape(2, 3)},
        {"w": torch.arange(6.0) + torch.tensor([0, 0, 0, 0, 0, 1e-6])},
    ]
    assert checksum(base) == checksum({"w": torch.arange(6.0)})
    assert all(checksum(base) != checksum(other) for other in others)


def test_one_changed_number_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(GencapsError, match="changed after it was written"):
        from_pretrained(folder)


def test_a_truncated_file_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(GencapsError, match="not a whole safetensors file"):
        from_pretrained(folder)


def test_foreign_weights_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file(load_file(path), path)  # the same numbers without our words
    with pytest.raises(GencapsError, match="was not written by gencaps"):
        from_pretrained(folder)


class Trap:
    """Would run code if anyone unpickled it."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_never_opened(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(GencapsError, match="not a whole safetensors file"):
        from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(GencapsError, match=r"no model\.safetensors"):
        from_pretrained(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 99, "gencaps": "9.9.9"}, "written by gencaps 9.9.9 (format 99)"),
        ({"paper": "poems"}, "disagree"),
        ({"model": {"dim": 5}}, "disagree"),
    ],
)
def test_a_changed_config_is_refused(folder: Path, change: dict[str, object], said: str) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(GencapsError) as caught:
        from_pretrained(folder)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json"])
def test_a_foreign_config_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(GencapsError, match=r"config\.json"):
        from_pretrained(folder)


def test_places_without_a_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(GencapsError, match="neither a run folder nor a model folder"):
        from_pretrained(tmp_path)
    with pytest.raises(GencapsError, match="there is no model"):
        from_pretrained("nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(GencapsError, match="is a file"):
        from_pretrained(tmp_path / "file")
    (tmp_path / "config.yaml").write_text("paper: variational\n")
    with pytest.raises(GencapsError, match="holds no model yet"):
        from_pretrained(tmp_path)


def test_a_model_that_travels_leaves_its_teachers_behind(tmp_path: Path) -> None:
    config = VariationalConfig(
        4, (8,), (2,), decoder=(16,), adversarial_weight=1.0, discriminator=4, reading_weight=1.0
    )
    taught = VariationalCapsules(config, PictureInfo(1, 8, ("a", "b"), data="mine")).eval()
    folder = save_pretrained(taught, tmp_path / "model")
    again = from_pretrained(folder)
    assert isinstance(again, VariationalCapsules)
    assert not any(name.startswith("discriminator") for name in load_file(folder / "model.safetensors"))
    assert again.discriminator is None
    assert again.config == taught.config
    x = torch.rand(3, 1, 8, 8)
    assert torch.equal(again.reconstruct(x), taught.reconstruct(x))
    losses = again.train().losses(x, torch.tensor([0, 1, 1]), Step(Noise(0)))  # and can still be trained further
    losses.total.backward()
    # a run keeps them, and so does what is loaded from it
    save_weights(taught, tmp_path)
    assert from_pretrained(tmp_path).discriminator is not None  # pyright: ignore[reportAttributeAccessIssue]
