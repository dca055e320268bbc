"""The one training loop: every paper, every stage, every player, on any number of devices."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from gencaps.data.batches import Batches
from gencaps.data.images import Splits
from gencaps.data.transforms import random_affine
from gencaps.engine.checkpoint import load_state, save_state
from gencaps.engine.evaluate import evaluate, pixels
from gencaps.engine.interrupt import Interrupted, stop_on_signal
from gencaps.engine.log import RunLog, remaining
from gencaps.engine.meter import Diverged, Meter, Stopwatch
from gencaps.engine.optimize import make_average, make_optimizer, make_schedule
from gencaps.engine.pretrained import build, save_weights
from gencaps.engine.recipe import TrainConfig
from gencaps.engine.run import Run
from gencaps.engine.samples import write_samples
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, PictureInfo, Player, Stage, Step
from gencaps.primitives.noise import Noise, mix_seed

LOOK_EVERY_S = 1.0
"""Seconds between looks at the losses, each of which makes the host wait for the device."""


@dataclass
class Position:
    """How far training has come: what a checkpoint needs beside the tensors."""

    stage: int = 0
    epoch: int = 0
    step: int = 0
    """Steps taken in the epoch."""
    taken: int = 0
    """Steps taken in the whole run."""
    sums: dict[str, float] = field(default_factory=dict)
    count: int = 0
    finished: bool = False


@dataclass
class Team:
    """A stage's players with what moves each."""

    players: dict[str, Player]
    optimizers: dict[str, Optimizer]
    schedules: dict[str, LRScheduler]

    def state(self) -> dict[str, Any]:
        """Gives what a checkpoint keeps of the optimizers."""
        return {
            "optimizers": {n: o.state_dict() for n, o in self.optimizers.items()},
            "schedules": {n: s.state_dict() for n, s in self.schedules.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Puts it back."""
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
            self.schedules[name].load_state_dict(state["schedules"][name])


def augment(x: Tensor, noise: Noise, config: TrainConfig) -> Tensor:
    """Moves a batch's pictures at random, on their device, as the recipe allows."""
    if not (config.degrees or config.scale or config.shift):
        return x
    uniforms = noise.uniform(len(x), 4)
    growth = (1.0 - config.scale, 1.0 + config.scale)
    return random_affine(x, uniforms, config.degrees, growth, config.shift / x.shape[-1])


def take_step(
    fabric: Fabric,
    wrapped: Any,
    team: Team,
    x: Tensor,
    y: Tensor,
    make_step: Callable[[str], Step],
    clip_norm: float,
) -> dict[str, Tensor]:
    """Lets each player move once on a batch and gives all loss terms, still on the device."""
    terms: dict[str, Tensor] = {}
    for name, optimizer in team.optimizers.items():
        optimizer.zero_grad(set_to_none=True)
        losses = wrapped.losses(x, y, make_step(name))
        fabric.backward(losses.total)
        if clip_norm > 0:
            fabric.clip_gradients(wrapped, optimizer, max_norm=clip_norm, error_if_nonfinite=False)
        optimizer.step()
        team.schedules[name].step()
        prefix = f"{name}." if len(team.optimizers) > 1 else ""
        terms |= {f"{prefix}{term}": value for term, value in {"loss": losses.total, **losses.terms}.items()}
    return terms


class Training:
    """A run in motion: the model, its averaged copy, and where it stands."""

    def __init__(self, run: Run, splits: Splits, fabric: Fabric, *, quiet: bool = False) -> None:
        self.run, self.splits, self.fabric, self.config = run, splits, fabric, run.recipe.train
        self.seed = run.recipe.seed
        torch.manual_seed(mix_seed(self.seed, "weights"))
        self.model: CapsuleModel = build(run.recipe.paper, run.recipe.model, PictureInfo.of(splits.train))
        if fabric.device.type == "cuda":
            self.model.to(memory_format=torch.channels_last)
            torch.set_float32_matmul_precision("high")
        self.model.to(fabric.device)
        self.average: AveragedModel | None = make_average(self.model, self.config.ema)
        self.batches = Batches(
            splits.train,
            self.config.batch,
            seed=self.seed,
            device=fabric.device,
            rank=fabric.global_rank,
            world=fabric.world_size,
        )
        self.position = Position()
        self.state = load_state(run.path)
        if self.state is not None:
            self._restore(self.state)
        if self.config.compile:
            for name in self.model.compiled:
                network = self.model.get_submodule(name)
                # Module.compile() does nothing, silently, for a network that is one of torch's own containers
                network.forward = torch.compile(network.forward)
        self.wrapped = fabric.setup_module(self.model)
        self.wrapped.mark_forward_method("losses")
        self.quiet = quiet
        self.saved_s = time.monotonic()

    @property
    def kept(self) -> CapsuleModel:
        """The weights that are kept: the averaged ones where there are any."""
        if self.average is None:
            return self.model
        module = self.average.module
        assert isinstance(module, CapsuleModel)
        return module

    def _restore(self, state: dict[str, Any]) -> None:
        self.position = Position(**state["position"])
        self.model.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])

    def save(self, team: Team | None) -> None:
        """Writes a checkpoint and the model as it stands; only the first process does."""
        self.saved_s = time.monotonic()
        if not self.fabric.is_global_zero:
            return
        state = {
            "position": asdict(self.position),
            "model": self.model.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "team": None if team is None else team.state(),
        }
        save_state(self.run.path, state)
        save_weights(self.kept, self.run.path)

    def make_team(self, stage: Stage, steps: int) -> Team:
        """Makes the optimizers of a stage."""
        players = self.model.players(stage.name)
        optimizers = {n: make_optimizer(p, self.config, self.fabric.device) for n, p in players.items()}
        schedules = {n: make_schedule(o, players[n], self.config, steps) for n, o in optimizers.items()}
        ready = {n: self.fabric.setup_optimizers(o) for n, o in optimizers.items()}
        return Team(players, ready, schedules)

    def train(self) -> CapsuleModel:
        """Runs every stage that is left, from where the last checkpoint stands."""
        log = None
        if self.fabric.is_global_zero:
            log = RunLog(self.run, self.position.taken, quiet=self.quiet)
        with log or warnings.catch_warnings(), stop_on_signal() as self.stop:
            stages = self.model.stages()
            while self.position.stage < len(stages):
                team = self.train_stage(stages[self.position.stage], log)
                at = self.position
                last = at.stage + 1 == len(stages)
                self.position = Position(at.stage + 1, taken=at.taken, finished=last)
                self.save(None if last else team)
        return self.kept.eval()

    def train_stage(self, stage: Stage, log: RunLog | None) -> Team:
        """Runs one stage to its end."""
        epochs, per_epoch = stage.epochs or self.config.epochs, self.batches.steps
        team = self.make_team(stage, epochs * per_epoch)
        at = self.position
        # a checkpoint at a stage's first step still holds the optimizers of the stage before
        if self.state is not None and self.state["team"] is not None and (at.epoch or at.step):
            team.load(self.state["team"])
        self.state = None
        if log is not None:
            log.begin(stage.name, epochs * per_epoch, at.epoch * per_epoch + at.step)
        while at.epoch < epochs:
            self.train_epoch(stage, team, epochs, log)
        return team

    def train_epoch(self, stage: Stage, team: Team, epochs: int, log: RunLog | None) -> None:
        """Runs one epoch, or what is left of it, and looks at the held-out part where it is time to."""
        at, config, per_epoch = self.position, self.config, self.batches.steps
        meter, waiting = Meter(at.sums, at.count), Stopwatch(self.fabric.device)
        self.model.train()
        started_s = looked_s = time.monotonic()
        first, total = at.step, epochs * per_epoch
        batches = self.batches.epoch(at.stage * 2**20 + at.epoch, start=at.step)
        while at.step < per_epoch:
            waiting.start()
            x, y = next(batches)
            waiting.stop()
            seed = mix_seed(self.seed, at.stage, at.epoch, at.step)
            torch.manual_seed(seed)  # dropout and the like draw from torch's own generator
            noise = Noise(seed, self.fabric.device, self.fabric.global_rank, self.fabric.world_size)
            progress = (at.epoch * per_epoch + at.step) / total
            make_step = lambda player: Step(noise, player, stage.name, progress)  # noqa: E731, B023
            x = augment(pixels(x), noise, config)
            meter.add(at.taken, take_step(self.fabric, self.wrapped, team, x, y, make_step, config.clip_norm))
            if self.average is not None:
                self.average.update_parameters(self.model)
            at.step, at.taken = at.step + 1, at.taken + 1
            now_s = time.monotonic()
            if now_s - looked_s >= LOOK_EVERY_S:
                means, looked_s = self.look(meter), now_s
                if log is not None:
                    rate = (at.step - first) * self.batches.batch / (now_s - started_s)
                    log.advance(at.epoch * per_epoch + at.step, f"loss {means['loss']:.3f}  {rate:,.0f} images/s")
            if self.fabric.world_size == 1 and self.stop.asked:
                self.interrupt(meter, team)
            if now_s - self.saved_s >= config.checkpoint_s:
                self.look(meter)
                self.save(team)
        self.end_epoch(stage, team, epochs, meter, waiting, started_s, first, log)

    def look(self, meter: Meter) -> dict[str, float]:
        """Fetches the losses; one that is not finite stops the run and leaves the last checkpoint alone."""
        try:
            means = meter.flush()
        except Diverged as error:
            raise GencapsError(
                f"{error}; training stopped and the last good checkpoint is kept in {self.run.path}: "
                "try a smaller --train.learning_rate or --train.clip_norm 1"
            ) from None
        self.position.sums, self.position.count = dict(meter.sums), meter.count
        return means if "loss" in means else {"loss": sum(v for k, v in means.items() if k.endswith(".loss")), **means}

    def interrupt(self, meter: Meter, team: Team) -> None:
        """Saves everything and leaves."""
        self.look(meter)
        self.save(team)
        raise Interrupted(f"stopped and saved; go on with: gencaps train --resume {self.run.path}")

    def end_epoch(
        self,
        stage: Stage,
        team: Team,
        epochs: int,
        meter: Meter,
        waiting: Stopwatch,
        started_s: float,
        first: int,
        log: RunLog | None,
    ) -> None:
        """Writes the epoch down, validates, draws samples and moves on to the next."""
        at, config = self.position, self.config
        means = self.look(meter)
        if self.fabric.world_size > 1:
            table = torch.tensor(list(means.values()), device=self.fabric.device, dtype=torch.float64)
            reduced = self.fabric.all_reduce(table, reduce_op="mean")
            assert isinstance(reduced, Tensor)
            means = dict(zip(means, reduced.tolist(), strict=True))
        seconds = time.monotonic() - started_s
        images_per_s = (at.step - first) * self.batches.batch / seconds
        at.epoch, at.step, at.sums, at.count = at.epoch + 1, 0, {}, 0
        if log is not None:
            where = {"stage": stage.name, "epoch": at.epoch, "step": at.taken}
            rates = {"images_per_s": images_per_s, "wait_share": waiting.total() / seconds, "seconds": seconds}
            rate = next(iter(team.optimizers.values())).param_groups[0]["lr"]
            log.row("train", {**where, **means, "learning_rate": float(rate), **rates})
            line = f"{stage.name} epoch {at.epoch}/{epochs}  loss {means['loss']:.3f}  {images_per_s:,.0f} images/s"
            if len(self.splits.valid) and (at.epoch % config.validate_every == 0 or at.epoch == epochs):
                seen = evaluate(self.kept, self.splits.valid).figures()
                log.row("valid", {**where, **{k: v for k, v in seen.items() if v is not None}})
                if seen["accuracy"] is not None:
                    line += f"  valid accuracy {100 * seen['accuracy']:.2f} %"
            left = remaining((epochs - at.epoch) * seconds * self.batches.steps / max(1, self.batches.steps - first))
            log.say(f"{line}  {left} left" if at.epoch < epochs else line)
            if config.samples_every and (at.epoch % config.samples_every == 0 or at.epoch == epochs):
                write_samples(self.kept, self.splits, self.run, log, f"{stage.name}_{at.epoch:04d}", at.taken)
        if self.fabric.world_size > 1:
            asked = self.fabric.all_reduce(torch.tensor(float(self.stop.asked)), reduce_op="sum")
            self.stop.asked = bool(asked > 0)
            if self.stop.asked:
                self.interrupt(meter, team)


def fit(run: Run, splits: Splits, fabric: Fabric, *, quiet: bool = False) -> CapsuleModel:
    """Trains a run to its end, from its last checkpoint where there is one.

    Everything random is a function of the seed and the step alone, so a run that was killed at any
    moment ends with the weights of one that was not, bit for bit on a CPU.
    """
    with warnings.catch_warnings():
        # Fabric's hints on DataLoader workers and on parameters without gradient are not for our users
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning_fabric")
        warnings.filterwarnings("ignore", message="find_unused_parameters=True was specified")
        return Training(run, splits, fabric, quiet=quiet).train()
