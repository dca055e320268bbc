"""What is measured of a scene of objects and parts: who stands for what, its size, and free-form inference."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from gencaps.data.batches import iterate
from gencaps.data.images import ImageSet
from gencaps.data.transforms import rotated
from gencaps.engine.evaluate import pixels
from gencaps.engine.probe import BATCH, of_all
from gencaps.metrics.generation import purity
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.specialisation import in_use
from gencaps.model import Step
from gencaps.reproduce.measures.probes import SWEEP, TEST_TURNS, all_turned, presences
from gencaps.reproduce.subject import Measured, Subject

STEPS, PICTURES = 200, 1000
PROBED = 10_000
"""Training pictures that a probe of refined presences is fitted on."""
AT_ONCE_ON_GPU = 5000
"""Pictures that a GPU refines at once: a step of few is mostly launches."""
TEACHING = ("uneven", "guess", "place", "twin", "doubt")
"""Loss terms that are no part of the bound."""


@torch.no_grad()
def specialisation(subject: Subject) -> Measured:
    """Gives how many objects are the strongest for a hundredth of the test pictures, and how pure they are."""
    model, test = subject.model, subject.splits.test
    strongest = of_all(model, test, presences).argmax(1).cpu()
    used = in_use(strongest, model.config.capsules[0])
    return Measured({"parents_in_use": float(used), "purity": purity(strongest, test.y)})


def parameters(subject: Subject) -> Measured:
    """Counts the numbers that the generative model has learned."""
    return Measured({"generative": float(subject.model.generative_parameters)})


@torch.no_grad()
def refine(subject: Subject) -> Measured:
    """Says what free-form inference adds: to the probe on t0, and to rotated pictures painted again.

    The probe is fitted once, on the encoder's presences of upright training pictures, and reads both, on the whole test
    part; for ``refitted_gain_points`` it is fitted on what it reads, on the first 10,000 training pictures both times.
    Errors are of the first 1,000 test pictures.
    """
    model, splits = subject.model, subject.splits
    steps, n = subject.count(STEPS, 3), subject.count(PICTURES, 40)
    train, test = splits.train, splits.test[torch.arange(subject.count(len(splits.test), 40))]
    fitted = LinearProbe.fit(of_all(model, train, presences), train.y.to(model.device), len(train.names))
    told = {n: _presences_after(model, test, n) for n in (0, steps)}
    before, after = (fitted.accuracy(features, test.y) for features in told.values())
    few = train[torch.arange(min(PROBED, len(train)))]
    y = few.y.to(model.device)
    refitted = {n: LinearProbe.fit(_presences_after(model, few, n), y, len(few.names)) for n in told}
    again = [refitted[n].accuracy(told[n], test.y) for n in told]
    turned = _shown(rotated(test, 180.0, 0).x[:n], model.device)
    errors = {n: (model.reconstruct(turned, refine=n) - turned).square().mean().item() for n in (0, steps)}
    return Measured(
        {
            "gain_points": 100 * (after - before),
            "refitted_gain_points": 100 * (again[1] - again[0]),
            "before": before,
            "after": after,
            "rotated_mse": errors[steps],
            "rotated_mse_encoder": errors[0],
        }
    )


@torch.no_grad()
def refine_objects(subject: Subject) -> Measured:
    """Says what optimising objects alone adds to the probe on t0, on test pictures turned by up to so many degrees.

    Parts stay as their encoder told. The probe is fitted once, on the network's presences of upright training pictures.
    """
    model, splits = subject.model, subject.splits
    steps, train = subject.count(STEPS, 3), splits.train
    test = splits.test[torch.arange(subject.count(len(splits.test), 40))]
    fitted = LinearProbe.fit(of_all(model, train, presences), train.y.to(model.device), len(train.names))
    values = {}
    for how, angle in SWEEP.items():
        shown = all_turned(test, angle, TEST_TURNS)
        before, after = (fitted.accuracy(_presences_after(model, shown, n, layers=1), test.y) for n in (0, steps))
        values |= {f"before-{how}": before, f"after-{how}": after, f"gain-{how}": 100 * (after - before)}
    return Measured(values)


@torch.no_grad()
def refining(subject: Subject) -> Measured:
    """Times free-form inference of the first 1,000 test pictures."""
    model, steps = subject.model, subject.count(STEPS, 3)
    x = _shown(subject.splits.test.x[: subject.count(PICTURES, 40)], model.device)
    model.refine(x, 2)  # the first steps choose kernels
    _wait(x)
    started_s = time.perf_counter()
    model.refine(x, steps)
    _wait(x)
    return Measured({"seconds": time.perf_counter() - started_s})


@torch.no_grad()
def bound(subject: Subject) -> Measured:
    """Gives the bound on log p(X) with Gaussian poses, in nats: the mean over the test part, at one draw a picture."""
    model, test, noise = subject.model, subject.splits.test, subject.noise("bound")
    total = 0.0
    for x, y in iterate(test, BATCH, model.device):
        terms = model.losses(pixels(x), y, Step(noise, stage="full")).terms
        total -= len(x) * sum(float(value) for name, value in terms.items() if name not in TEACHING)
    return Measured({"nats": total / len(test)})


def _presences_after(model: Any, images: ImageSet, steps: int, layers: int | None = None) -> Tensor:
    """Gives the logits of q(t0) after so many steps of free-form inference of so many layers, or of all."""
    if not steps:
        return of_all(model, images, presences)

    def refined(model: Any, x: Tensor) -> Tensor:
        return model.refine(x, steps, layers=layers).objects.presence_logit

    return of_all(model, images, refined, AT_ONCE_ON_GPU if model.device.type == "cuda" else BATCH)


def _shown(x: Tensor, device: torch.device) -> Tensor:
    return pixels(x.to(device))


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
