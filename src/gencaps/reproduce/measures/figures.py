"""The papers' pictures, made by our models; nothing in them is chosen for looks."""

from __future__ import annotations

import torch
from PIL import Image

from gencaps.engine.evaluate import pixels
from gencaps.engine.samples import class_grid
from gencaps.figures import grid
from gencaps.reproduce.measures.editing import edited_attributes
from gencaps.reproduce.subject import Subject, sample

COLUMNS, STRIPS, STEPS = 10, 6, 10
SHOWN = 4
"""Attributes in a figure: the first of those that are edited."""


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


def _edited(subject: Subject) -> list[int]:
    return edited_attributes(subject.splits.test.names)[:SHOWN]


def _flip(subject: Subject, x: torch.Tensor, target: int) -> torch.Tensor:
    """Wishes for the other state of one attribute."""
    active = subject.model.classify(x).label
    wanted = torch.full_like(active, -1)
    wanted[:, target] = 1 - active[:, target]
    return wanted


@torch.no_grad()
def attribute_generation(subject: Subject) -> Image.Image:
    """Draws new pictures with a picture's attributes, one off twice and on twice, (Huang et al., 2018), Figure 2."""
    model, rows, labels = subject.model, [], []
    for row, target in enumerate(_edited(subject)):
        x = pixels(subject.splits.test.x[row : row + 1].to(model.device))
        y = model.classify(x).label.repeat(4, 1)
        y[:, target] = torch.tensor([0, 0, 1, 1], device=y.device)
        rows.append(torch.cat([x, model.generate(y, subject.noise("figure"))]))
        labels.append(f"{subject.splits.test.names[target]}: like, off, off, on, on")
    return grid(torch.cat(rows), 5, row_labels=labels)


@torch.no_grad()
def attribute_swapping(subject: Subject) -> Image.Image:
    """Draws pictures, reconstructions and one attribute swapped in four styles, (Huang et al., 2018), Figure 3."""
    model, rows, labels = subject.model, [], []
    for row, target in enumerate(_edited(subject)):
        for x in pixels(subject.splits.test.x[2 * row : 2 * row + 2].to(model.device)).split(1):
            many = x.expand(4, -1, -1, -1)
            made = model.edit(many, _flip(subject, many, target), subject.noise("figure"))
            rows.append(torch.cat([x, model.reconstruct(x), made]))
            labels.append(f"{subject.splits.test.names[target]} swapped")
    return grid(torch.cat(rows), 6, row_labels=labels)


@torch.no_grad()
def attribute_interpolation(subject: Subject) -> Image.Image:
    """Draws one attribute growing from off to on, (Huang et al., 2018), Figure 4."""
    model, rows, labels = subject.model, [], []
    for row, target in enumerate(_edited(subject)):
        x = pixels(subject.splits.test.x[row : row + 1].to(model.device))
        wanted = _flip(subject, x, target)
        rows += [model.edit(x, wanted, intensity=share) for share in torch.linspace(0, 1, STEPS).tolist()]
        labels.append(f"{subject.splits.test.names[target]}, {'on' if wanted[0, target] else 'off'}")
    return grid(torch.cat(rows), STEPS, row_labels=labels)


@torch.no_grad()
def multi_attribute_interpolation(subject: Subject) -> Image.Image:
    """Draws walks between two styles of the same attributes, then between pictures, (Huang et al., 2018), Figure 5."""
    model = subject.model
    x = pixels(subject.splits.test.x[:5].to(model.device))
    y = model.classify(x[:1]).label
    ends = [model.generate(y, subject.noise(f"figure {end}")) for end in "ab"]
    walks = [model.interpolate(*ends, STEPS), model.interpolate(x[:-1], x[1:], STEPS)]
    return grid(torch.cat(walks).flatten(0, 1), STEPS)


@torch.no_grad()
def each_alone(subject: Subject) -> Image.Image:
    """Draws pictures of two digits, painted again, and each of the two painted alone with all others off."""
    model, test = subject.model, subject.splits.test
    x = pixels(test.x[:COLUMNS].to(model.device))
    two = model.classify(x).presence.topk(2).indices
    alone = []
    for place in range(2):
        wanted = torch.full_like(model.classify(x).label, 0)
        wanted.scatter_(1, two[:, place : place + 1], -1)  # the digit is kept, all others are switched off
        alone.append(model.edit(x, wanted))
    labels = ["two digits", "painted again", "one alone", "the other"]
    return grid(torch.cat([x, model.reconstruct(x), *alone]), COLUMNS, row_labels=labels)
