"""Templates: the simplest capsules, painted over each other where their poses put them."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.papers.probabilistic.capsules import Capsules
from gencaps.primitives.pose import over, warp

Painted = Float[Tensor, "batch channels height width"]
Covers = Float[Tensor, "batch capsules 1 height width"]


def cover(child: Capsules, alpha: Float[Tensor, "capsules 1 side side"], size: int) -> Covers:
    """Gives how much each template covers each pixel: its alpha where its pose puts it, times its presence."""
    many = alpha.expand(len(child.pose), *alpha.shape)
    return warp(many, child.pose, (size, size)) * torch.sigmoid(child.presence_logit)[..., None, None, None]


def paint(
    child: Capsules,
    rgb: Float[Tensor, "capsules channels side side"],
    alpha: Float[Tensor, "capsules 1 side side"],
    size: int,
) -> Painted:
    """Paints all templates over each other on black, the last on top: P of (Smith et al., 2021), Sec. 2.1 and Eq. (7).

    Args:
        child: presences t_j and poses A_j of the lowest layer.
        rgb: the templates' colours T_j, one channel or three.
        alpha: how much each template covers, alpha_j.
        size: pixels a side of the picture.
    """
    many = torch.cat([rgb, alpha], 1).expand(len(child.pose), -1, -1, -1, -1)
    layers = warp(many, child.pose, (size, size))
    # what is read outside a template is black and covers nothing, so its colour never shows
    return over(layers[:, :, :-1], layers[:, :, -1:] * torch.sigmoid(child.presence_logit)[..., None, None, None])


def responsibilities(covers: Covers) -> Float[Tensor, "batch layers height width"]:
    """Gives the share of each pixel that each template painted; the last share is the black ground's.

    ``alpha_j prod_{k > j} (1 - alpha_k)``: what is left of a layer under those above it; the shares add up to 1.
    (Smith et al., 2021), Sec. 2.1, unrolled.
    """
    alpha = covers.squeeze(2)
    through = torch.cat([1 - alpha, torch.ones_like(alpha[:, :1])], 1).flip(1).cumprod(1).flip(1)
    return torch.cat([alpha * through[:, 1:], through[:, :1]], 1)


class Templates(nn.Module):
    """The pictures of the lowest capsules, each with its alpha channel.

    Args:
        capsules: how many.
        channels: 1 for grey, 3 for colour.
        side: pixels a side of a template.
        size: pixels a side of the pictures that are painted.
    """

    def __init__(self, capsules: int, channels: int, side: int, size: int) -> None:
        super().__init__()
        self.size = size
        line = torch.linspace(-1, 1, side)
        blob = 1.0 - 3.0 * (line[:, None].square() + line.square())
        self.rgb_logit = nn.Parameter(1.0 + 0.5 * torch.randn(capsules, channels, side, side))
        self.alpha_logit = nn.Parameter(blob + 0.5 * torch.randn(capsules, 1, side, side))

    def forward(self, child: Capsules) -> Painted:
        """Paints the mean picture P."""
        return paint(child, self.rgb_logit.sigmoid(), self.alpha_logit.sigmoid(), self.size)

    def sheet(self) -> Float[Tensor, "capsules channels side side"]:
        """Gives the templates on black."""
        return self.rgb_logit.sigmoid() * self.alpha_logit.sigmoid()

    def covers(self, child: Capsules) -> Covers:
        """Gives how much of each pixel each template would cover if it lay on top."""
        return cover(child, self.alpha_logit.sigmoid(), self.size)
