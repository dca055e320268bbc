"""The pictures of (Smith et al., 2021), made by our models; nothing in them is chosen for looks."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image
from torch import Tensor

from gencaps.data.transforms import rotate
from gencaps.engine.evaluate import pixels
from gencaps.figures import grid, tinted
from gencaps.reproduce.subject import Subject

COLUMNS, ANGLES, STEPS = 10, 12, 200


def _around(x: Tensor, device: torch.device) -> Tensor:
    """Gives one picture turned in steps of 30 degrees."""
    degrees = torch.arange(ANGLES, dtype=torch.float32) * (360.0 / ANGLES)
    return rotate(pixels(x).expand(ANGLES, -1, -1, -1), degrees).to(device)


def _by_template(model: Any, x: Tensor) -> Tensor:
    """Colours pictures by the template that painted each pixel; the ground stays black."""
    told = model.explain(x)
    return tinted(told.templates[:, :-1], told.picture)


@torch.no_grad()
def refine_rotated(subject: Subject) -> Image.Image:
    """Draws a turned picture, its reconstruction, and the one after free-form inference, Figure 3."""
    model = subject.model
    x = _around(subject.splits.test.x[:1], model.device)
    steps = subject.count(STEPS, 3)
    rows = torch.cat([x, model.reconstruct(x), model.reconstruct(x, refine=steps)])
    return grid(rows, ANGLES, row_labels=["turned", "encoder", f"{steps} steps"])


@torch.no_grad()
def template_sheet(subject: Subject) -> Image.Image:
    """Draws every template, as it looks on black, Figure 6."""
    return grid(subject.model.template_sheet(), 8)


@torch.no_grad()
def templates_turned(subject: Subject) -> Image.Image:
    """Draws which template paints what as one picture is turned in steps of 30 degrees, Figure 5."""
    model = subject.model
    x = _around(subject.splits.test.x[:1], model.device)
    colour = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x
    return grid(torch.cat([colour, _by_template(model, x)]), ANGLES, row_labels=["turned", "by template"])


@torch.no_grad()
def template_arrangement(subject: Subject) -> Image.Image:
    """Draws which template paints what by a model of upright pictures and by one of turned ones, Figure 7."""
    rows = []
    for trained in subject.trained:
        x = pixels(trained.splits.test.x[:COLUMNS].to(trained.model.device))
        rows.append(_by_template(trained.model, x))
    labels = [f"trained on turns of up to {t.run.recipe.train.degrees:g}" for t in subject.trained]
    return grid(torch.cat(rows), COLUMNS, row_labels=labels)
