"""Every kind of CapsuleGAN does what it says, travels in a file, and compiles whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gencaps.abilities import abilities
from gencaps.api import Capsules
from gencaps.engine.pretrained import from_pretrained, save_pretrained, sketch
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo
from gencaps.papers.capsule_gan.bigan import CapsuleBiGAN
from gencaps.papers.capsule_gan.conditional import ConditionalCapsuleGAN
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.papers.capsule_gan.model import CapsuleGAN
from gencaps.primitives.noise import Noise
from tests.helpers import refused
from tests.papers.capsule_gan.helpers import KINDS, make, pictures

CLASSES = {"plain": CapsuleGAN, "conditional": ConditionalCapsuleGAN, "bigan": CapsuleBiGAN}
CAN = {
    "plain": ("sample", "walk", "score"),
    "conditional": ("generate", "sample", "walk", "score"),
    "bigan": ("encode", "reconstruct", "sample", "walk", "score", "interpolate"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_settings_choose_the_kind_and_the_kind_what_it_can(kind: str) -> None:
    model = make(kind)
    assert type(model) is CLASSES[kind]
    assert abilities(model) == CAN[kind]
    assert (model.paper, bool(model.title)) == ("capsule_gan", True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_from_its_file(kind: str, tmp_path: Path) -> None:
    model, x = make(kind, spectral=True).eval(), pictures()
    back: Any = from_pretrained(save_pretrained(model, tmp_path / kind))
    assert type(back) is CLASSES[kind]
    assert torch.equal(back.score(x), model.score(x))
    assert torch.equal(back.sample(3, Noise(1)), model.sample(3, Noise(1)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spectral", [False, True])
def test_every_kind_builds_without_numbers(kind: str, spectral: bool) -> None:
    config = CapsuleGANConfig(spectral=spectral, **KINDS[kind])
    model = sketch("capsule_gan", config, PictureInfo(3, 64, tuple("0123456789")))
    assert {p.device.type for p in model.parameters()} == {"meta"}


def test_the_api_asks_each_kind_for_what_it_can() -> None:
    plain, conditional, bigan = (Capsules(make(kind)) for kind in KINDS)
    x = pictures(2)
    assert plain.generate(n=3).pictures.shape == (3, 1, 20, 20)
    refused(lambda: plain.generate("b"), "knows no classes")
    asked = conditional.generate(["b", "c"], n=3)
    assert (asked.labels, asked.columns, len(asked.pictures)) == (["b", "c"], 3, 6)
    assert bigan.encode(x).z.shape == (2, 5)
    assert bigan.reconstruct(x).pictures.shape == (2, 1, 20, 20)
    assert bigan.interpolate(x[:1], x[1:], steps=3).pictures.shape == (3, 1, 20, 20)
    for model in (plain, conditional, bigan):
        assert model.walk(2, steps=3).pictures.shape == (6, 1, 20, 20)
        assert model.score(x).shape == (2,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, 0) for name in ("latent", "width", "discriminator", "capsules", "primary_dim", "dim", "rounds")),
        ("discriminator_rate", 0.0),
        ("discriminator_rate", -1.0),
        ("down_weight", 0.0),
        ("between", -1),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(GencapsError, match=f"model.{field} is"):
        CapsuleGANConfig(**{field: value})  # pyright: ignore[reportArgumentType]


def test_two_kinds_at_once_are_refused() -> None:
    refused(lambda: CapsuleGANConfig(conditional=True, bigan=True), "model.conditional", "model.bigan", "choose one")


# a process of its own: the tests' shape checks wrap every function, and those cannot be compiled
CODE = """
import torch
from gencaps.model import Step
from gencaps.primitives.noise import Noise
from tests.papers.capsule_gan.helpers import KINDS, make, pictures

x, y = pictures(), torch.tensor([0, 1, 2, 0])
for kind in KINDS:
    plain, model = (make(kind, over="inputs", spectral=True).eval() for _ in range(2))
    for name in model.compiled:  # whole: a part that cannot be traced is an error
        setattr(model, name, torch.compile(getattr(model, name), backend="aot_eager", fullgraph=True))
    for player in ("discriminator", "generator"):
        a, b = (m.losses(x, y, Step(Noise(0), player=player)) for m in (plain, model))
        torch.testing.assert_close(a.terms, b.terms)
        a.total.backward(), b.total.backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-5)
print("whole")
"""


def test_the_game_compiles_whole_and_stays_the_same() -> None:
    words = [sys.executable, "-c", CODE]
    done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "whole"
