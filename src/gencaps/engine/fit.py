"""The one training loop: every paper, every stage, every player, on any number of devices."""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from gencaps.data.batches import Batches
from gencaps.data.images import Splits
from gencaps.data.transforms import bending, horizontal_flip, random_affine
from gencaps.engine.checkpoint import STATE, save_state
from gencaps.engine.compiled import compile_methods
from gencaps.engine.evaluate import evaluate, pixels
from gencaps.engine.interrupt import Interrupted, Stop, stop_on_signal
from gencaps.engine.log import RunLog, remaining
from gencaps.engine.meter import Diverged, Meter, Stopwatch
from gencaps.engine.optimize import MovingAverage, make_average
from gencaps.engine.pretrained import build, save_weights
from gencaps.engine.recipe import TrainConfig
from gencaps.engine.recorded import RecordedStep, can_record
from gencaps.engine.run import Run, resume_command
from gencaps.engine.samples import write_samples
from gencaps.engine.team import Team, take_step
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, PictureInfo, Stage, Step
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
    """Sums of the loss terms over the epoch's ``count`` steps that were looked at."""
    count: int = 0
    finished: bool = False


KNOTS = 5
"""Knots a side of the field that bends a picture."""


def random_numbers(config: TrainConfig) -> int:
    """Counts the random numbers that ``augment`` needs for a picture; what bends it comes last."""
    return 5 + (2 * KNOTS**2 if config.bend else 0)


def augment(x: Tensor, u: Tensor, config: TrainConfig) -> Tensor:
    """Turns bytes into pictures and moves them as the recipe allows, by uniform random numbers (batch, 5 or more)."""
    pictures = pixels(x)
    if config.flip:
        pictures = horizontal_flip(pictures, u[:, 4])
    if not (config.degrees or config.scale or config.shift or config.bend):
        return pictures
    growth = (1.0 - config.scale, 1.0 + config.scale)
    height, width = x.shape[-2:]
    bend = bending(u[:, 5:].unflatten(1, (2, KNOTS, KNOTS)), config.bend, (height, width)) if config.bend else None
    # what comes in from outside is the edge drawn out: black would put a frame around photographs
    shift = config.shift / width
    return random_affine(pictures, u[:, :4], config.degrees, growth, shift, padding="border", bend=bend)


class Training:
    """A run in motion: the model, its averaged copy, and where it stands."""

    def __init__(
        self,
        run: Run,
        splits: Splits,
        fabric: Fabric,
        *,
        resumed: dict[str, Any] | None,
        log: RunLog | None,
        stop: Stop,
    ) -> None:
        self.run, self.splits, self.fabric, self.log, self.stop = run, splits, fabric, log, stop
        self.config, self.seed = run.recipe.train, run.recipe.seed
        torch.manual_seed(mix_seed(self.seed, "weights"))
        self.model: CapsuleModel = build(run.recipe.paper, run.recipe.model, PictureInfo.of(splits.train))
        self.model.to(fabric.device)
        if fabric.device.type == "cuda":
            self.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.batches = Batches(
            splits.train,
            self.config.batch_for(len(splits.train), fabric.world_size),
            seed=self.seed,
            device=fabric.device,
            rank=fabric.global_rank,
            world=fabric.world_size,
        )
        epochs = sum(stage.epochs or self.config.epochs for stage in self.model.stages())
        self.average: MovingAverage | None = make_average(self.model, self.config.ema_for(epochs * self.batches.steps))
        self.position = Position()
        self.resumed = resumed
        if resumed is not None:
            self._restore(resumed)
        steady = all(self.model.steady(stage.name) for stage in self.model.stages())
        self.records = self.config.record and can_record(fabric) and steady
        """Whether steps are recorded and replayed."""
        self.recorded: RecordedStep | None = None
        self.augment = torch.compile(augment) if self.config.compile else augment
        if self.config.compile:
            compile_methods(self.model, recorded=self.records)
        self.wrapped = fabric.setup_module(self.model)
        self.saved_s = self.looked_s = time.monotonic()
        self.said: tuple[str, ...] = ()

    def _restore(self, state: dict[str, Any]) -> None:
        self.position = Position(**state["position"])
        self.model.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])

    @property
    def kept(self) -> CapsuleModel:
        """The weights that are kept: the averaged ones where there are any."""
        if self.average is None:
            return self.model
        module = self.average.module
        assert isinstance(module, CapsuleModel)
        return module

    def train(self) -> CapsuleModel:
        """Runs every stage that is left, from where the last checkpoint stands."""
        stages = self.model.stages()
        while self.position.stage < len(stages):
            self.train_stage(stages[self.position.stage])
            at = self.position
            self.position = Position(at.stage + 1, taken=at.taken, finished=at.stage + 1 == len(stages))
            self.save(None)
        return self.kept.eval()

    def train_stage(self, stage: Stage) -> None:
        """Runs one stage to its end."""
        epochs, at = stage.epochs or self.config.epochs, self.position
        steps = epochs * self.batches.steps
        team = Team.of(self.model, stage, self.config, steps, self.fabric)
        if self.resumed is not None and self.resumed["team"] is not None:
            team.load(self.resumed["team"])
        self.resumed = self.recorded = None
        if self.log is not None:
            self.log.begin(stage.name, steps, at.epoch * self.batches.steps + at.step)
        while at.epoch < epochs:
            self.train_epoch(stage, team, epochs)

    def train_epoch(self, stage: Stage, team: Team, epochs: int) -> None:
        """Runs one epoch, or what is left of it."""
        at, per_epoch = self.position, self.batches.steps
        meter, waiting, first = Meter(at.sums, at.count), Stopwatch(self.fabric.device), at.step
        self.model.train()
        started_s = time.monotonic()
        batches = self.batches.epoch(at.stage * 2**20 + at.epoch, start=at.step)
        while at.step < per_epoch:
            waiting.start()
            x, y = next(batches)
            waiting.stop()
            done = at.epoch * per_epoch + at.step
            meter.add(at.taken, self.take_step(stage, team, x, y, done / (epochs * per_epoch)))
            if self.average is not None:
                self.average.update_parameters(self.model)
            at.step, at.taken = at.step + 1, at.taken + 1
            now_s = time.monotonic()
            if now_s - self.looked_s >= LOOK_EVERY_S:
                means, self.looked_s = self.look(meter), now_s
                rate = (at.step - first) * self.batches.batch / (now_s - started_s)
                if self.log is not None:
                    self.log.advance(done + 1, f"loss {means['loss']:.3f}  {rate:,.0f} images/s")
            if self.stop.asked and self.fabric.world_size == 1:
                self.interrupt(meter, team)
            if now_s - self.saved_s >= self.config.checkpoint_s:
                self.look(meter)
                self.save(team)
        means, seconds = self.averaged_over_processes(self.look(meter)), time.monotonic() - started_s
        at.epoch, at.step, at.sums, at.count = at.epoch + 1, 0, {}, 0
        if self.log is not None:
            images_per_s = (per_epoch - first) * self.batches.batch / seconds
            rates = {"images_per_s": images_per_s, "wait_share": waiting.total() / seconds, "seconds": seconds}
            self.write_down(stage, epochs, {**means, "learning_rate": team.learning_rate, **rates}, self.log)
        if self.fabric.world_size > 1 and self.averaged_over_processes({"asked": float(self.stop.asked)})["asked"] > 0:
            self.interrupt(meter, team)

    def take_step(self, stage: Stage, team: Team, x: Tensor, y: Tensor, progress: float) -> dict[str, Tensor]:
        """Lets each player move once on a batch of bytes; all that is random follows from where training stands."""
        at = self.position
        seed = mix_seed(self.seed, at.stage, at.epoch, at.step)
        if progress == 0.0:
            noise = self.noise(seed)
            self.model.begin(stage.name, self.moved(x, noise), noise)
        if self.recorded is None and self.records:
            self.recorded = self.record_step(stage, team, x, y)
        torch.manual_seed(seed)  # dropout and the like draw from torch's own generator
        if self.recorded is not None:
            return self.recorded.take(x, y, seed, progress)
        noise = self.noise(seed)
        step = Step(noise, stage=stage.name, progress=progress)
        return take_step(self.fabric, self.wrapped, team, self.moved(x, noise), y, step, self.config.clip_norm)

    def noise(self, seed: int) -> Noise:
        """Makes a step's random numbers, of which each process takes its own rows."""
        return Noise(seed, self.fabric.device, self.fabric.global_rank, self.fabric.world_size)

    def moved(self, x: Tensor, noise: Noise) -> Tensor:
        """Gives a batch as the recipe lets it vary."""
        return self.augment(x, noise.uniform(len(x), random_numbers(self.config)), self.config)

    def record_step(self, stage: Stage, team: Team, x: Tensor, y: Tensor) -> RecordedStep | None:
        """Records a step of a stage, or says why it cannot be; training goes on either way."""
        try:
            return RecordedStep(
                self.fabric, self.wrapped, self.model, team, stage.name, self.moved, x, y, self.config.clip_norm
            )
        except RuntimeError as error:
            self.records = False
            if self.log is not None:
                self.log.say(
                    f"note: steps are not recorded ({str(error).splitlines()[0][:120]}): slower, else the same"
                )
            return None

    def look(self, meter: Meter) -> dict[str, float]:
        """Fetches the losses; one that is not finite stops the run and leaves the last checkpoint alone."""
        try:
            means = meter.flush()
        except Diverged as error:
            kept = f"the last good checkpoint is kept in {self.run.path}"
            if not (self.run.path / STATE).exists():
                kept = "there was no checkpoint yet"
            raise GencapsError(
                f"{error}; training stopped and {kept}: try a smaller --train.learning_rate or --train.clip_norm 1"
            ) from None
        self.position.sums, self.position.count = dict(meter.sums), meter.count
        players = [value for name, value in means.items() if name.endswith(".loss")]
        return {"loss": sum(players), **means} if players else means

    def averaged_over_processes(self, values: dict[str, float]) -> dict[str, float]:
        """Averages numbers over all processes, each of which saw its own part of every batch."""
        if self.fabric.world_size == 1:
            return values
        table = torch.tensor(list(values.values()), device=self.fabric.device, dtype=torch.float64)
        reduced = self.fabric.all_reduce(table, reduce_op="mean")
        assert isinstance(reduced, Tensor)
        return dict(zip(values, reduced.tolist(), strict=True))

    def write_down(self, stage: Stage, epochs: int, values: dict[str, float], log: RunLog) -> None:
        """Logs an epoch, looks at the held-out part and draws samples where it is time to."""
        at, config = self.position, self.config
        where = {"stage": stage.name, "epoch": at.epoch, "step": at.taken}
        last = at.epoch == epochs
        log.row("train", {**where, **values})
        note = f"loss {values['loss']:.3f}  {values['images_per_s']:,.0f} images/s"
        log.advance(at.epoch * self.batches.steps, note)
        name = f"{stage.name} " if len(self.model.stages()) > 1 else ""
        line = f"{name}epoch {at.epoch}/{epochs}  {note}"
        validated = len(self.splits.valid) > 0 and (at.epoch % config.validate_every == 0 or last)
        if validated:
            seen = evaluate(self.kept, self.splits.valid).figures()
            log.row("valid", {**where, **{k: v for k, v in seen.items() if v is not None}})
            if seen["accuracy"] is not None:
                line += f"  valid accuracy {100 * seen['accuracy']:.2f} %"
        if not last and values["images_per_s"] > 0:  # none were seen where a run resumed at an epoch's end
            left_s = (epochs - at.epoch) * self.batches.steps * self.batches.batch / values["images_per_s"]
            line += f"  {remaining(left_s)} left"
        log.say(line, minor=not validated and not last)
        self.remark(where, values, at.epoch / epochs, log)
        if config.samples_every and (at.epoch % config.samples_every == 0 or last):
            write_samples(self.kept, self.splits, self.run, log, f"{stage.name}_{at.epoch:04d}", at.taken)

    def remark(self, where: dict[str, Any], values: dict[str, float], progress: float, log: RunLog) -> None:
        """Says what the model has to say about an epoch, each line when it begins to hold."""
        remarks = self.model.remarks(values, progress)
        for line in remarks:
            if line not in self.said:
                log.say(f"epoch {where['epoch']}: {line}")
                log.row("remark", {**where, "remark": line})
        self.said = remarks

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

    def interrupt(self, meter: Meter, team: Team) -> None:
        """Saves everything and leaves."""
        self.look(meter)
        self.save(team)
        raise Interrupted(f"stopped and saved; go on with: {resume_command(self.run.path)}")


def fit(
    run: Run, splits: Splits, fabric: Fabric, *, resumed: dict[str, Any] | None = None, quiet: bool = False
) -> CapsuleModel:
    """Trains a run to its end, from the checkpoint that it is resumed from where there is one.

    Everything random is a function of the seed and the step alone, so a run that was killed at any
    moment ends with the weights of one that was not, bit for bit on a CPU.
    """
    # only the first process writes; rows after the checkpoint that a run resumes from are written again
    taken = 0 if resumed is None else resumed["position"]["taken"]
    log = RunLog(run, taken, quiet=quiet) if fabric.is_global_zero else None
    with warnings.catch_warnings(), log or nullcontext(), stop_on_signal() as stop:
        # Fabric's and DDP's hints on workers and on parameters without gradient are not for our users
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning_fabric")
        warnings.filterwarnings("ignore", message="find_unused_parameters=True was specified")
        return Training(run, splits, fabric, resumed=resumed, log=log, stop=stop).train()
