"""The renderer against a loop over pixels, and who painted what."""

from __future__ import annotations

import math

import pytest
import torch

from gencaps.papers.probabilistic.capsules import Capsules
from gencaps.papers.probabilistic.templates import Templates, paint, responsibilities
from tests.papers.probabilistic.helpers import random_capsules


def read(template: torch.Tensor, x: float, y: float) -> float:
    """Reads a template at a point, -1 to 1, by bilinear interpolation; nothing outside."""
    side = template.shape[-1]
    column, row = ((1 + value) * side / 2 - 0.5 for value in (x, y))
    total = 0.0
    for r in (math.floor(row), math.floor(row) + 1):
        for c in (math.floor(column), math.floor(column) + 1):
            if 0 <= r < side and 0 <= c < side:
                total += float(template[r, c]) * (1 - abs(row - r)) * (1 - abs(column - c))
    return total


@pytest.mark.parametrize("channels", [1, 3])
def test_painting_agrees_with_a_loop_over_pixels(channels: int) -> None:
    torch.manual_seed(0)
    child, size = random_capsules(2, 3, 5, scale=0.2), 6
    rgb, alpha = torch.rand(3, channels, 4, 4), torch.rand(3, 1, 4, 4)
    ours = paint(child, rgb, alpha, size)
    for b in range(2):
        for row in range(size):
            for column in range(size):
                at = torch.tensor([(2 * column + 1) / size - 1, (2 * row + 1) / size - 1])
                pixel = torch.zeros(channels)
                for j in range(3):
                    a = child.pose[b, j]
                    x, y = torch.linalg.solve(a[:, :2], at - a[:, 2]).tolist()
                    cover = float(child.presence_logit[b, j].sigmoid()) * read(alpha[j, 0], x, y)
                    colour = torch.tensor([read(rgb[j, c], x, y) for c in range(channels)])
                    pixel = colour * cover + pixel * (1 - cover)
                assert torch.allclose(ours[b, :, row, column], pixel, atol=1e-4)


def test_shares_of_a_pixel_add_up_to_one_and_paint_the_picture() -> None:
    torch.manual_seed(0)
    templates, child = Templates(3, 1, 5, 9), random_capsules(2, 3, 6, scale=0.2)
    templates.rgb_logit.data.fill_(40.0)  # white: a pixel is what is not the ground
    shares = responsibilities(templates.covers(child))
    assert torch.allclose(shares.sum(1), torch.ones(2, 9, 9), atol=1e-6)
    assert (shares >= 0).all()
    on_top = templates.covers(child)[:, 2, 0]
    assert torch.allclose(shares[:, 2], on_top)  # the last template lies on top
    inside = on_top > 0.1
    covered = (1 - shares[:, -1])[inside]
    assert (covered >= on_top[inside] - 1e-6).all()


def test_an_absent_template_paints_nothing() -> None:
    child = random_capsules(1, 2, 7)
    templates = Templates(2, 1, 5, 9)
    gone = templates(Capsules(torch.full((1, 2), -60.0), child.pose))
    assert gone.abs().max() < 1e-12


def test_gradients_are_finite_where_a_template_is_flat_or_far_away() -> None:
    templates = Templates(3, 1, 5, 9)
    pose = torch.stack([torch.zeros(2, 3), 1e4 * torch.ones(2, 3), 1e-9 * torch.eye(2, 3)])[None].requires_grad_()
    templates(Capsules(torch.zeros(1, 3), pose)).sum().backward()
    assert pose.grad is not None
    assert pose.grad.isfinite().all()
