"""What is measured of a scene of objects and parts: who stands for what, its size, and free-form inference."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from gencaps.data.transforms import rotated
from gencaps.engine.evaluate import pixels
from gencaps.engine.probe import BATCH, of_all
from gencaps.metrics.generation import purity
from gencaps.metrics.probe import LinearProbe
from gencaps.metrics.specialisation import in_use
from gencaps.reproduce.measures.probes import presences
from gencaps.reproduce.subject import Measured, Subject

STEPS, PICTURES = 200, 1000
PROBED = 10_000
"""Training pictures that the probe of refined presences is fitted on."""


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
    """Measures what free-form inference adds: to the probe on t0, and to rotated pictures painted again.

    The probe is fitted once, on the encoder's presences of upright training pictures, and reads both.
    """
    model, splits = subject.model, subject.splits
    steps, n = subject.count(STEPS, 3), subject.count(PICTURES, 40)
    train = splits.train.x[: subject.count(PROBED, len(splits.train.x))]
    features = torch.cat([presences(model, _shown(x, model.device)) for x in train.split(BATCH)])
    fitted = LinearProbe.fit(features, splits.train.y[: len(train)].to(model.device), len(splits.train.names))
    test, y = splits.test.x[:n], splits.test.y[:n].to(model.device)
    x = _shown(test, model.device)
    model.refine(x, 2)  # the first steps choose kernels
    _wait(x)
    started_s = time.perf_counter()
    refined = model.refine(x, steps)
    _wait(x)
    seconds = time.perf_counter() - started_s
    before, after = fitted.accuracy(presences(model, x), y), fitted.accuracy(refined.objects.presence_logit, y)
    turned = _shown(rotated(splits.test, 180.0, 0).x[:n], model.device)
    errors = {n: (model.reconstruct(turned, refine=n) - turned).square().mean().item() for n in (0, steps)}
    return Measured(
        {
            "gain_points": 100 * (after - before),
            "rotated_mse": errors[steps],
            "rotated_mse_encoder": errors[0],
            "seconds": seconds,
        }
    )


def _shown(x: Tensor, device: torch.device) -> Tensor:
    return pixels(x.to(device))


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
