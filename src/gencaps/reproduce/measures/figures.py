"""The papers' pictures, made by our models; nothing in them is chosen for looks."""

from __future__ import annotations

import torch
from PIL import Image

from gencaps.engine.evaluate import pixels
from gencaps.engine.samples import class_grid
from gencaps.figures import grid
from gencaps.reproduce.subject import Subject, sample

COLUMNS, STRIPS, STEPS = 10, 6, 10


@torch.no_grad()
def reconstructions_and_samples(subject: Subject) -> Image.Image:
    """Draws test pictures, their reconstructions and new samples of each class, (Huang et al., 2018), Figure 6."""
    model = subject.model
    x = pixels(subject.splits.test.x[: 4 * COLUMNS].to(model.device))
    rows = min(10, len(model.pictures.names))
    made = class_grid(model, rows, COLUMNS, subject.noise("figure")).flatten(0, 1)
    labels = [*["original"] * 4, *["painted again"] * 4, *(f"new: {name}" for name in model.pictures.names[:rows])]
    return grid(torch.cat([x, model.reconstruct(x), made]), COLUMNS, row_labels=labels)


@torch.no_grad()
def interpolation(subject: Subject) -> Image.Image:
    """Draws walks between the first test pictures, (Huang et al., 2018), Figure 7."""
    x = pixels(subject.splits.test.x[: STRIPS + 1].to(subject.model.device))
    return grid(subject.model.interpolate(x[:-1], x[1:], STEPS).flatten(0, 1), STEPS)


@torch.no_grad()
def samples(subject: Subject) -> Image.Image:
    """Draws the first hundred samples, (Jaiswal et al., 2018), Figures 1 and 2."""
    return grid(sample(subject.model, COLUMNS * COLUMNS, subject.noise("figure")), COLUMNS)
