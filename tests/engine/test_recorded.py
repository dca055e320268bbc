"""A recorded step trains to the weights that a plain one trains to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gencaps.engine import fit, recorded
from gencaps.engine.recipe import Recipe, make_recipe
from gencaps.engine.train import start
from gencaps.papers.variational.model import VariationalCapsules
from tests.engine.helpers import same, weights

ADVERSARY: dict[str, Any] = {"adversarial_weight": 1.0, "reading_weight": 1.0, "discriminator": 8, "scales": 1}


class Stand:
    """Stands in for a CUDA graph where there is no GPU: does the work again and writes into the same memory."""

    made = 0

    def __init__(self, work: Callable[[], Sequence[Tensor]], generators: Sequence[torch.Generator]) -> None:
        Stand.made += 1
        self.work, self.left = work, list(work())

    def replay(self) -> None:
        left = self.left
        for old, new in zip(left, self.work(), strict=True):
            old.detach().copy_(new.detach())


def recipe(record: bool, norm: str, **model: Any) -> Recipe:
    small = {"dim": 4, "widths": [8], "strides": [2], "decoder": [16], "norm": norm, **model}
    train = {"epochs": 2, "batch": 128, "samples_every": 0, "degrees": 5.0, "ema": 0.9, "record": record}
    return make_recipe("variational", overrides={"model": small, "train": train})


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "record", Stand)
    monkeypatch.setattr(recorded, "warm_up", lambda work: [work() for _ in range(3)])
    monkeypatch.setattr(fit, "can_record", lambda fabric: True)
    monkeypatch.setattr(Stand, "made", 0)


@pytest.mark.parametrize("norm", ["group", "batch"])
@pytest.mark.parametrize("model", [{}, ADVERSARY], ids=["alone", "with an adversary"])
def test_it_ends_with_the_same_weights(tmp_path: Path, pretend: None, norm: str, model: dict[str, Any]) -> None:
    for record in (False, True):
        start(recipe(record, norm, **model), tmp_path / str(record), device="cpu", quiet=True)
    assert Stand.made == (2 if model else 1)  # one a player, once
    assert same(weights(tmp_path / "True"), weights(tmp_path / "False"))


@pytest.mark.parametrize(
    "model",
    [
        {"line": 0, "alone": "encoded", "alone_weight": 0.5, "alone_noise": 0.5, "moment_weight": 0.1},
        {"line": 3, "alone": "inferred"},
        {"line": 0, "alone": "encoded", "chains": 8, "firing": "sampled"},
    ],
    ids=["encoded", "inferred", "chains"],
)
def test_every_stage_of_a_product_of_experts_ends_with_the_same_weights(
    tmp_path: Path, pretend: None, model: dict[str, Any]
) -> None:
    # dropout, running means and chains go on as they would
    small = {"filters": [8, 16], "kernel": 3, "stride": 2, "capsules": [4], "dim": 4, "dropout": 0.2, "back_epochs": 1}
    for record in (False, True):
        train = {"epochs": 1, "batch": 256, "samples_every": 0, "record": record}
        made = make_recipe("product_of_experts", overrides={"model": {**small, **model}, "train": train})
        start(made, tmp_path / str(record), device="cpu", quiet=True)
    assert Stand.made == 3
    assert same(weights(tmp_path / "True"), weights(tmp_path / "False"))


@pytest.mark.parametrize(
    ("system", "model"),
    [
        ("gan", {"width": 4, "discriminator": 4, "spectral": True}),
        ("capsule_gan", {"width": 4, "discriminator": 4, "spectral": True, "over": "inputs"}),
        ("capsule_gan", {"width": 4, "discriminator": 4, "conditional": True}),
        ("capsule_gan", {"width": 4, "discriminator": 4, "bigan": True}),
        ("capsnet", {}),
        ("resnet", {}),
        ("vae", {}),
    ],
    ids=["gan", "capsule_gan", "conditional", "bigan", "capsnet", "resnet", "vae"],
)
def test_every_steady_system_ends_with_the_same_weights(
    tmp_path: Path, pretend: None, system: str, model: dict[str, Any]
) -> None:
    # what spectral norms and running means remember goes on as it would
    for record in (False, True):
        train = {"epochs": 1, "batch": 256, "samples_every": 0, "valid": 0.0, "ema": 0.9, "record": record}
        made = make_recipe(system, overrides={"model": model, "train": train})
        start(made, tmp_path / str(record), device="cpu", quiet=True)
    assert Stand.made > 0
    assert same(weights(tmp_path / "True"), weights(tmp_path / "False"))


def test_a_step_that_changes_as_training_goes_ends_with_the_same_weights(tmp_path: Path, pretend: None) -> None:
    for record in (False, True):
        start(recipe(record, "group", warmup=0.8), tmp_path / str(record), device="cpu", quiet=True)
    start(recipe(True, "group"), tmp_path / "cold", device="cpu", quiet=True)
    assert Stand.made == 2
    assert same(weights(tmp_path / "True"), weights(tmp_path / "False"))
    assert not same(weights(tmp_path / "True"), weights(tmp_path / "cold"))


@pytest.mark.parametrize("model", [{}, {"turns": 3, "turn_in_training": True}, {"top": "set"}], ids=str)
def test_every_stage_of_a_scene_ends_with_the_same_weights(
    tmp_path: Path, pretend: None, model: dict[str, Any]
) -> None:
    # heat and balance fall as the objects' stage goes on; objects begin as the first pictures' arrangements
    small = {"capsules": [4, 4], "template": 5, "widths": [8, 8], "features": 8, "start": "pictures", **model}
    for record in (False, True):
        train = {"epochs": 1, "batch": 256, "samples_every": 0, "record": record}
        made = make_recipe("probabilistic", overrides={"model": small, "train": train})
        start(made, tmp_path / str(record), device="cpu", quiet=True)
    assert Stand.made == 3
    assert same(weights(tmp_path / "True"), weights(tmp_path / "False"))


def test_a_model_whose_step_is_not_steady_is_not_recorded(
    tmp_path: Path, pretend: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VariationalCapsules, "steady", lambda self, stage: False)
    start(recipe(True, "group"), tmp_path / "run", device="cpu", quiet=True)
    assert Stand.made == 0


def test_what_cannot_be_recorded_is_trained_all_the_same(
    tmp_path: Path, pretend: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(recorded, "record", refuse)
    start(recipe(True, "batch"), tmp_path / "True", device="cpu")
    start(recipe(False, "batch"), tmp_path / "False", device="cpu", quiet=True)
    assert same(weights(tmp_path / "True"), weights(tmp_path / "False"))
    assert "steps are not recorded (operation not permitted" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("model", [{}, ADVERSARY], ids=["alone", "with an adversary"])
def test_on_a_gpu_it_ends_close_to_the_same_weights(tmp_path: Path, model: dict[str, Any]) -> None:
    for record in (False, True):
        start(recipe(record, "batch", **model), tmp_path / str(record), device="cuda", quiet=True)
    plain = weights(tmp_path / "False")
    for name, tensor in weights(tmp_path / "True").items():
        torch.testing.assert_close(tensor, plain[name], rtol=2e-2, atol=2e-2)
