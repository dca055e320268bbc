"""What a training step costs, ours beside the rival's, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gencaps.data.batches import Batches
from gencaps.engine.compiled import compile_methods
from gencaps.engine.devices import make_fabric
from gencaps.engine.evaluate import pixels
from gencaps.engine.pretrained import build
from gencaps.engine.recorded import RecordedStep, can_record
from gencaps.engine.team import Team, take_step
from gencaps.engine.train import Trained
from gencaps.model import PictureInfo, Step
from gencaps.primitives.noise import Noise
from gencaps.reproduce.subject import Measured, Subject

WARM, STEPS, ROUNDS = 30, 100, 5
"""Steps before the clock runs, steps of a round, and rounds that the two models take in turn."""
Players = tuple[str, ...]
TURNS: dict[str, Players] = {"turn": ("discriminator",), "step": ("discriminator", "generator")}
"""The discriminator's turn alone, and a whole step."""


def step_cost(subject: Subject) -> Measured:
    """Gives how long a training step of the first run's model takes beside one of the second's, at equal batch.

    ``ratio`` is of the discriminator's turn, ``whole_ratio`` of a whole step with the generator's. New models of the
    runs' recipes train on their own pictures, compiled and recorded as their recipes say, in turn, so that both meet
    the machine in the same state; medians.
    """
    torch.compiler.reset()  # torch compiles a method so many times, for all seeds' models together, then no more
    batch, device = subject.run.recipe.train.batch, subject.model.device
    rounds, steps = subject.count(ROUNDS, 1), subject.count(STEPS, 2)
    steppers = [stepper(trained, batch) for trained in subject.trained]
    laps: dict[tuple[int, str], list[float]] = {}
    for lap in range(rounds + 1):
        for place, step in enumerate(steppers):
            for name, players in TURNS.items():
                seconds = clock(step, players, steps if lap else subject.count(WARM, 2), device)
                laps.setdefault((place, name), []).append(seconds)
    # the first round compiles and warms up
    ms = {key: 1000 * statistics.median(seconds[1:]) for key, seconds in laps.items()}
    values = {
        "ratio": ms[0, "turn"] / ms[1, "turn"],
        "whole_ratio": ms[0, "step"] / ms[1, "step"],
        "ms": ms[0, "turn"],
        "rival_ms": ms[1, "turn"],
    }
    return Measured(values, (f"batch {batch}, medians of {rounds} rounds of {steps} steps, the two models in turn",))


def stepper(trained: Trained, batch: int) -> Callable[[Players], None]:
    """Makes a function that trains a new model of a run's recipe by one step of the players named."""
    recipe, device = trained.run.recipe, trained.model.device
    fabric = make_fabric(device.type, 1, recipe.train.precision)
    model = build(recipe.paper, recipe.model, PictureInfo.of(trained.splits.train)).to(device).train()
    if device.type == "cuda":
        model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    records = recipe.train.record and can_record(fabric)
    if recipe.train.compile:
        compile_methods(model, recorded=records)
    (stage, *_) = model.stages()
    team = Team.of(model, stage, recipe.train, 10**6, fabric)
    wrapped = fabric.setup_module(model)
    pictures = forever(Batches(trained.splits.train, batch, seed=0, device=device))
    clip, recorded = recipe.train.clip_norm, dict[Players, RecordedStep]()

    def step(players: Players) -> None:
        x, y = next(pictures)
        moving = Team(team.players, {name: team.optimizers[name] for name in players}, team.schedules)
        if not records:
            take_step(fabric, wrapped, moving, pixels(x), y, Step(Noise(0, device)), clip)
            return
        if players not in recorded:
            recorded[players] = RecordedStep(
                fabric, wrapped, model, moving, stage.name, lambda x, noise: pixels(x), x, y, clip
            )
        recorded[players].take(x, y, 0)

    return step


def forever(batches: Batches) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields batches epoch after epoch."""
    epoch = 0
    while True:
        yield from batches.epoch(epoch)
        epoch += 1


def clock(step: Callable[[Players], None], players: Players, steps: int, device: torch.device) -> float:
    """Times steps and gives the seconds of one."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    started_s = time.perf_counter()
    for _ in range(steps):
        step(players)
    wait()
    return (time.perf_counter() - started_s) / steps
