"""Laws of what all games of two players share: walks in z, and that collapse is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gencaps.api import Capsules
from gencaps.baselines.gan.config import GANConfig
from gencaps.baselines.gan.model import ConvGAN
from gencaps.cli import main
from gencaps.engine.pretrained import save_pretrained
from gencaps.engine.recipe import make_recipe
from gencaps.engine.train import start
from gencaps.game import COLLAPSED, AdversarialGame
from gencaps.model import PictureInfo
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.papers.capsule_gan.model import CapsuleGAN
from gencaps.primitives.noise import Noise
from tests.helpers import isolated, refused


def make(kind: str = "gan", **settings: Any) -> AdversarialGame:
    torch.manual_seed(0)
    tiny: dict[str, Any] = {"latent": 5, "width": 4, "discriminator": 4, **settings}
    pictures = PictureInfo(1, 10, ("a", "b"))
    if kind == "gan":
        return ConvGAN(GANConfig(**tiny), pictures).eval()
    return CapsuleGAN(CapsuleGANConfig(**tiny), pictures).eval()


@pytest.mark.parametrize("kind", ["gan", "capsule_gan"])
def test_a_walk_starts_and_ends_at_draws_of_z(kind: str) -> None:
    model = make(kind)
    walks = model.walk(3, 5, Noise(7))
    assert walks.shape == (3, 5, 1, 10, 10)
    noise = Noise(7)
    start, end = noise.normal(3, 1, 5)[:, 0], noise.normal(3, 1, 5)[:, 0]
    torch.testing.assert_close(walks[:, 0], model.paint(start))
    torch.testing.assert_close(walks[:, -1], model.paint(end))
    assert torch.equal(walks, model.walk(3, 5, Noise(7)))


def test_every_step_of_a_walk_is_a_draw_of_the_prior() -> None:
    """Half way along a straight line the variance would be 1/2."""
    path = make().path(20_000, 3, Noise(0))
    torch.testing.assert_close(path.var(0), torch.ones(3, 5), atol=0.05, rtol=0)
    # a = 45 degrees: cos = sin = sqrt(1/2)
    torch.testing.assert_close(path[:, 1], (path[:, 0] + path[:, 2]) * 0.5**0.5)


def test_the_api_walks_and_refuses_what_is_no_walk() -> None:
    model = Capsules(make("capsule_gan"))
    painted = model.walk(2, steps=4, seed=3)
    assert painted.pictures.shape == (8, 1, 10, 10)
    assert painted.columns == 4
    torch.testing.assert_close(painted.pictures, model.model.walk(2, 4, Noise(3)).flatten(0, 1))  # pyright: ignore
    refused(lambda: model.walk(2, steps=1), "steps is 1", "at least 2")
    refused(lambda: model.walk(0), "n is 0", "at least 1")


def test_the_command_line_walks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    isolated(tmp_path, monkeypatch)
    folder = save_pretrained(make("capsule_gan"), tmp_path / "model")
    assert main(["walk", str(folder), "--n", "3", "--steps", "5", "--seed", "2", "--json", "--out", "walk.png"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["pictures"], said["columns"], said["seed"], said["out"]) == (15, 5, 2, "walk.png")
    assert Path("walk.png").exists()


def test_collapse_is_remarked_from_the_threshold_down_and_not_at_the_start() -> None:
    model = make()
    (line,) = model.remarks({"generator.diversity": COLLAPSED - 0.01}, 0.5)
    assert "\n" not in line
    assert "collapsed" in line
    # the same words while it holds, so that they are said once
    assert model.remarks({"generator.diversity": 0.0}, 0.9) == (line,)
    assert model.remarks({"generator.diversity": COLLAPSED}, 0.5) == ()
    assert model.remarks({"generator.diversity": 0.0}, 0.05) == ()
    assert model.remarks({"loss": 1.0}, 0.5) == ()


def test_a_run_says_once_that_its_generator_collapsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # a generator that paints the same whatever z is
    monkeypatch.setattr(ConvGAN, "paint", lambda self, z: torch.sigmoid(self.generator(0 * z)).float())
    small = {"width": 2, "discriminator": 2, "latent": 2}
    recipe = make_recipe("gan", overrides={"model": small, "train": {"epochs": 3, "size": 10, "samples_every": 0}})
    assert start(recipe, tmp_path / "run", device="cpu") is not None
    said = [line for line in capsys.readouterr().err.splitlines() if "collapsed" in line]
    assert len(said) == 1
    assert said[0].startswith("epoch 1: ")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    remarks = [row for row in rows if row["split"] == "remark"]
    assert [row["epoch"] for row in remarks] == [1]
    assert remarks[0]["remark"] in said[0]
    assert all(row["generator.diversity"] < 1e-6 for row in rows if row["split"] == "train")
