"""Whether pictures of nothing known are told from known ones."""

from __future__ import annotations

import torch
from torch import Tensor

from gencaps import data
from gencaps.data.batches import iterate
from gencaps.data.images import ImageSet
from gencaps.engine.evaluate import pixels
from gencaps.metrics.detection import auroc
from gencaps.primitives.noise import Noise
from gencaps.reproduce.subject import Measured, Subject

FOREIGN = {"mnist": "fashion_mnist", "fashion_mnist": "mnist"}
"""What each set is told from. Others, and a smoke run's stand-ins, are told from their own pictures upside down."""


@torch.no_grad()
def ood(subject: Subject) -> Measured:
    """Gives the AUROC of test pictures against another set and against noise, by energy and by the least KL alone."""
    test, spec = subject.splits.test, subject.run.recipe.data
    name = FOREIGN.get(spec, "fashion_mnist" if subject.smoke else "turned")
    other = ImageSet("turned", test.x.flip(2), test.y, test.names, test.labels)
    if spec in FOREIGN:
        other = data.load(name, size=test.x.shape[-1], valid=0.0).test
    noise = Noise(0).uniform(*test.x.shape).mul(255).to(torch.uint8)
    noisy = ImageSet("noise", noise, test.y, test.names, test.labels)
    inside = _scores(subject, test)
    values: dict[str, float] = {}
    for title, images in ((name, other), ("noise", noisy)):
        energy, kl = _scores(subject, images)
        label = title.replace("_", "-")
        values |= {f"auroc-{label}": auroc(inside[0], energy), f"auroc-kl-{label}": auroc(inside[1], kl)}
    return Measured(values)


def _scores(subject: Subject, images: ImageSet) -> tuple[Tensor, Tensor]:
    """Gives minus the energy and minus the least KL of each picture: high where it is known."""
    model, energies, least = subject.model, [], []
    for x, _ in iterate(images, 500, model.device):
        energies.append(-model.energy(pixels(x)))
        least.append(-model.entities.grouped(model.encode(pixels(x)).kl).amin(-1).sum(1))
    return torch.cat(energies), torch.cat(least)
