"""The training loop: what it learns, what it keeps, and that only seed and step decide what happens."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from gencaps.engine import fit as fit_module
from gencaps.engine.fit import augment, random_numbers
from gencaps.engine.interrupt import Interrupted
from gencaps.engine.meter import Meter
from gencaps.engine.recipe import TrainConfig
from gencaps.engine.run import Run
from gencaps.engine.team import Team
from gencaps.engine.train import load_splits, resume
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Losses, PictureInfo, Player, Stage, Step
from gencaps.primitives.noise import Noise
from tests.engine.helpers import same, tiny, train, weights


def test_a_run_learns_and_leaves_a_whole_folder(tmp_path: Path) -> None:
    run = train(tmp_path / "run", tiny(epochs=4, samples_every=2)).run
    rows = [row for row in run.rows() if row["split"] == "train"]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    assert {"margin", "recon", "learning_rate", "images_per_s", "wait_share"} <= rows[0].keys()
    assert rows[-1]["step"] == 4 * (1294 // 64)
    assert all("accuracy" in row for row in run.rows() if row["split"] == "valid")
    names = {path.name for path in run.path.iterdir()}
    assert {
        "config.yaml",
        "facts.json",
        "config.json",
        "model.safetensors",
        "state.pt",
        "metrics.jsonl",
    } <= names
    assert not [name for name in names if name.startswith(".")]
    assert len(list((run.path / "samples").glob("*.png"))) == 4
    assert list((run.path / "tensorboard").glob("events*"))
    facts = run.facts()
    assert facts["split"]["train"]["pictures"] == 1294
    assert facts["environment"]["torch"] == torch.__version__


def test_same_seed_same_weights_other_seed_other_weights(tmp_path: Path) -> None:
    first, second, other = (weights(train(tmp_path / str(i), tiny(seed=s)).run.path) for i, s in enumerate((1, 1, 2)))
    assert same(first, second)
    assert not same(first, other)


def test_global_generator_does_not_matter(tmp_path: Path) -> None:
    found = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        found.append(weights(train(tmp_path / str(seed), tiny()).run.path))
    assert same(*found)


@pytest.mark.parametrize("stop_at", [1, 20, 27, 39])
def test_a_stopped_run_resumes_to_the_same_weights_and_rows(
    tmp_path: Path, stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 steps an epoch: stops after the first step, at an epoch's end, inside one, and before the last step."""
    whole = train(tmp_path / "whole", tiny()).run
    taken, real = 0, fit_module.take_step

    def counted(*arguments: object, **options: object) -> dict[str, Tensor]:
        nonlocal taken
        taken += 1
        if taken == stop_at:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(fit_module, "take_step", counted)
    with pytest.raises(Interrupted, match="gencaps train --resume"):
        train(tmp_path / "stopped", tiny())
    assert taken == stop_at
    trained = resume(tmp_path / "stopped", device="cpu", quiet=True)
    assert trained is not None
    assert taken == 40
    assert same(weights(whole.path), weights(trained.run.path))
    keys = ("split", "epoch", "step", "loss", "accuracy", "mse")
    assert [[row.get(k) for k in keys] for row in trained.run.rows()] == [
        [row.get(k) for k in keys] for row in whole.rows()
    ]


def test_a_nan_names_step_and_term_and_keeps_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = fit_module.take_step, 0

    def poisoned(*arguments: object, **options: object) -> dict[str, Tensor]:
        nonlocal taken
        terms = real(*arguments, **options)  # pyright: ignore[reportArgumentType]
        taken += 1
        return terms | ({"recon": torch.tensor(float("nan"))} if taken == 27 else {})

    monkeypatch.setattr(fit_module, "take_step", poisoned)
    with pytest.raises(GencapsError) as caught:
        train(tmp_path / "run", tiny(checkpoint_s=0.0))
    assert "step 26: the loss term 'recon' is nan" in str(caught.value)
    state = torch.load(tmp_path / "run" / "state.pt", weights_only=True)
    assert state["position"]["taken"] <= 26
    assert all(t.isfinite().all() for t in state["model"].values())


def test_meter_is_looked_at_before_every_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of weights whose loss was never looked at could be one of NaN."""
    pending: list[int] = []
    real = fit_module.Training.save
    meters: list[Meter] = []
    make = Meter.__init__

    def remember(self: Meter, *arguments: object) -> None:
        make(self, *arguments)  # pyright: ignore[reportArgumentType]
        meters.append(self)

    def save(self: fit_module.Training, team: Team | None) -> None:
        pending.append(len(meters[-1].pending))
        real(self, team)

    monkeypatch.setattr(Meter, "__init__", remember)
    monkeypatch.setattr(fit_module.Training, "save", save)
    train(tmp_path / "run", tiny(epochs=1, checkpoint_s=0.0))
    assert len(pending) > 20
    assert set(pending) == {0}


def test_metrics_after_the_checkpoint_are_dropped_on_resume(tmp_path: Path) -> None:
    run = train(tmp_path / "run", tiny(epochs=1)).run
    with run.metrics.open("a") as file:
        file.write(json.dumps({"split": "train", "epoch": 9, "step": 999, "loss": 1.0}) + "\n")
        file.write('{"split": "train", "ep')
    from gencaps.engine.log import RunLog

    with RunLog(run, 20, quiet=True):
        pass
    assert max(row["step"] for row in Run.open(run.path).rows()) == 20


def test_averaged_weights_are_the_ones_that_are_kept(tmp_path: Path) -> None:
    run = train(tmp_path / "run", tiny()).run
    state = torch.load(run.path / "state.pt", weights_only=True)
    kept, last = weights(run.path), state["model"]
    average = {k.removeprefix("module."): v for k, v in state["average"].items() if k != "n_averaged"}
    assert same(kept, average)
    assert not same(kept, last)


def test_augmentation_moves_pictures_only_when_asked_and_by_its_numbers_alone() -> None:
    x = torch.randint(0, 256, (3, 1, 12, 12), dtype=torch.uint8)
    u = Noise(0).uniform(3, 4)
    assert torch.equal(augment(x, u, TrainConfig()), x.float() / 255)
    config = TrainConfig(degrees=20.0, scale=0.1, shift=2.0)
    moved = augment(x, u, config)
    assert (moved - x / 255).abs().max() > 0.05
    assert torch.equal(moved, augment(x, u, config))
    white = torch.full((3, 1, 12, 12), 255, dtype=torch.uint8)
    torch.testing.assert_close(augment(white, u, config), torch.ones(3, 1, 12, 12))  # no dark frame comes in
    # one half means no turn and no shift; growth is even on a logarithmic scale, about the root of 0.9 x 1.1
    still = augment(x, torch.full((3, 4), 0.5), TrainConfig(degrees=20.0, shift=2.0))
    torch.testing.assert_close(still, x / 255, atol=1e-5, rtol=0)


def test_flip_mirrors_left_to_right_those_whose_fifth_number_is_below_one_half() -> None:
    x = torch.randint(0, 256, (4, 3, 5, 7), dtype=torch.uint8)
    u = torch.rand(4, 5)
    u[:, 4] = torch.tensor([0.0, 0.499, 0.5, 0.999])
    made = augment(x, u, TrainConfig(flip=True))
    plain = x.float() / 255
    assert torch.equal(made, torch.cat([plain[:2].flip(3), plain[2:]]))
    u[:, :4] = 1 - u[:, :4]  # the other four move pictures, and mirror none
    assert torch.equal(made, augment(x, u, TrainConfig(flip=True)))


def test_flip_mirrors_half_of_the_pictures() -> None:
    x = torch.arange(2, dtype=torch.uint8).expand(2000, 1, 1, 2)
    made = augment(x, Noise(0).uniform(2000, 5), TrainConfig(flip=True))
    share = (made[:, 0, 0, 0] > 0).float().mean().item()
    assert share == pytest.approx(0.5, abs=4 * 0.5 / 2000**0.5)  # four standard deviations of tossing a coin


def test_without_flip_the_fifth_number_changes_nothing() -> None:
    x = torch.randint(0, 256, (6, 1, 12, 12), dtype=torch.uint8)
    u = Noise(0).uniform(6, 5)
    for config in (TrainConfig(), TrainConfig(degrees=20.0, scale=0.1, shift=2.0)):
        mirrored = u.clone()
        mirrored[:, 4] = 1 - u[:, 4]
        assert torch.equal(augment(x, u, config), augment(x, mirrored, config))
    assert torch.equal(augment(x, u, TrainConfig()), x.float() / 255)


def test_mirrored_pictures_are_moved_like_any_other() -> None:
    x = torch.randint(0, 256, (3, 1, 12, 12), dtype=torch.uint8)
    u = Noise(0).uniform(3, 5)
    u[:, 4] = 0.1
    config = TrainConfig(degrees=20.0, scale=0.1, shift=2.0)
    assert torch.equal(augment(x, u, replace(config, flip=True)), augment(x.flip(3), u, config))


def test_bending_takes_numbers_of_its_own_and_only_when_asked() -> None:
    """What turns and shifts a picture is the same with it and without, so older runs can be repeated."""
    assert random_numbers(TrainConfig()) == 5
    x = torch.randint(0, 256, (3, 1, 12, 12), dtype=torch.uint8)
    config = TrainConfig(degrees=20.0, bend=1.0)
    u = Noise(0).uniform(3, random_numbers(config))
    straight = augment(x, u, replace(config, bend=0.0))
    assert (augment(x, u, config) - straight).abs().max() > 0.05
    u[:, 5:] = 0.5
    torch.testing.assert_close(augment(x, u, config), straight)


class Duel(CapsuleModel):
    """Two stages; in the second, two players move one number each: ``a`` towards 3, ``b`` away from ``a``."""

    paper = "duel"

    def __init__(self, config: object, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.first, self.a, self.b = (nn.Parameter(torch.zeros(())) for _ in range(3))
        self.seen: list[tuple[str, str]] = []
        self.values: list[tuple[float, float, float]] = []
        self.autocast: set[bool] = set()
        self.wanted: set[tuple[str, bool, bool, bool]] = set()
        self.begun: list[tuple[str, int]] = []

    def stages(self) -> tuple[Stage, ...]:
        return (Stage("warm", epochs=1), Stage("game"))

    def players(self, stage: str) -> dict[str, Player]:
        if stage == "warm":
            return {"warm": Player([self.first])}
        return {"a": Player([self.a]), "b": Player([self.b], rate=0.1, optimizer="sgd")}

    def begin(self, stage: str, x: Tensor, noise: Noise) -> None:
        assert x.is_floating_point()
        self.begun.append((stage, len(self.seen)))

    def losses(self, x: Tensor, y: Tensor, step: Step) -> Losses:
        self.seen.append((step.stage, step.player))
        self.values.append((self.first.item(), self.a.item(), self.b.item()))
        self.autocast.add(torch.is_autocast_enabled("cpu"))
        self.wanted.add((step.player, self.first.requires_grad, self.a.requires_grad, self.b.requires_grad))
        if step.player == "warm":
            total = (self.first - 1).square()
        elif step.player == "a":
            total = (self.a - 3).square() + 0.0 * self.b
        else:
            total = (self.b - self.a - 1).square()
        return Losses(total, {"distance": total.detach()})


def test_stages_run_in_turn_and_players_move_only_their_own_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_module, "build", lambda paper, config, pictures: Duel(config, pictures))
    monkeypatch.setattr(fit_module, "save_weights", lambda model, folder: None)
    recipe = tiny(epochs=3, ema=0.0, learning_rate=0.1, schedule="constant")
    trained = train(tmp_path / "run", recipe)
    model = trained.model
    assert isinstance(model, Duel)
    per_epoch = 1294 // 64
    assert model.seen == [("warm", "warm")] * per_epoch + [("game", "a"), ("game", "b")] * (3 * per_epoch)
    assert model.autocast == {False}
    assert model.begun == [("warm", 0), ("game", per_epoch)]  # once each, before the first step
    # gradients of the player's own weights alone, and of all again afterwards
    assert model.wanted == {("warm", True, False, False), ("a", False, True, False), ("b", False, False, True)}
    assert all(p.requires_grad for p in model.parameters())
    for before, after, (stage, player) in zip(model.values, model.values[1:], model.seen, strict=False):
        moved = [name for name, old, new in zip(("warm", "a", "b"), before, after, strict=True) if old != new]
        assert moved == [player], f"in stage {stage} the turn of {player} moved {moved}"
    start = model.seen.index(("game", "a"))
    # Adam's first step is the rate: a = 0.1. b's is plain descent at a tenth of it: 0.01 * 2 (a + 1 - b) = 0.022
    assert model.values[start + 2][1:] == pytest.approx((0.1, 0.022))
    rows = trained.run.rows()
    assert {row["stage"] for row in rows} == {"warm", "game"}
    assert {"a.distance", "b.distance"} <= rows[-1].keys() | rows[-2].keys()


@pytest.mark.parametrize("precision", ["bf16-mixed", "32-true"])
def test_asked_precision_reaches_the_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Literal["bf16-mixed", "32-true"]
) -> None:
    """Fabric casts in forward alone: losses called by another name ran in float32, silently.

    The toy multiplies no matrices, so that CPUs without bf16 can run it.
    """
    monkeypatch.setattr(fit_module, "build", lambda paper, config, pictures: Duel(config, pictures))
    monkeypatch.setattr(fit_module, "save_weights", lambda model, folder: None)
    recipe = tiny(epochs=1, ema=0.0)
    fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
    model = fit_module.fit(Run.create(tmp_path / "run", recipe), load_splits(recipe), fabric, quiet=True)
    assert isinstance(model, Duel)
    assert model.autocast == {precision == "bf16-mixed"}
