"""The adversary of Eq. (5) (Huang et al., 2018): a discriminator that looks at a picture at several scales."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

Pictures = Float[Tensor, "batch channels height width"]
Verdicts = list[Float[Tensor, "batch _"]]
"""At each scale, one number for each place: 1 says real, 0 says painted."""
LEAST = 8
"""Pixels a side below which no further scale looks."""


class MultiScaleDiscriminator(nn.Module):
    """Judges patches of a picture at its own size, at half of it, and so on.

    Note: section 3.2 does not describe the network: at each scale three convolutions of stride 2 and LeakyReLU,
    then one number a place (Wang et al., 2018), without normalisation.

    Args:
        told: entities of which it is told whether the picture is said to show them; 0 tells it nothing (the paper).
    """

    def __init__(self, channels: int, size: int, width: int, scales: int, told: int = 0) -> None:
        super().__init__()
        looks = [scale for scale in range(scales) if size >> scale >= LEAST] or [0]
        self.looks = nn.ModuleList(Look(channels, size >> scale, width, told) for scale in looks)

    def forward(self, x: Pictures, shown: Float[Tensor, "batch entities"] | None = None) -> Verdicts:
        """Gives the verdicts at every scale."""
        found = []
        x = 2 * x - 1
        for look in self.looks:
            found.append(look(x, shown).flatten(1).float())
            x = F.avg_pool2d(x, 2)
        return found


class Look(nn.Module):
    """Judges patches at one scale; where it is told what the picture shows, the verdict is about both.

    Note: departs from section 3.2 where it is told: a projection (Miyato and Koyama, 2018), because a good picture of
    another class than was asked for is no good answer.
    """

    def __init__(self, channels: int, size: int, width: int, told: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for step in range(3):
            if size < LEAST:
                break
            layers += [nn.Conv2d(channels, width << step, 4, 2, 1), nn.LeakyReLU(0.2)]
            channels, size = width << step, size // 2
        self.body = nn.Sequential(*layers)
        self.verdict = nn.Conv2d(channels, 1, 3, 1, 1)
        self.fits = nn.Linear(told, channels) if told else None

    def forward(
        self, x: Pictures, shown: Float[Tensor, "batch entities"] | None = None
    ) -> Float[Tensor, "batch 1 down across"]:
        """Gives one number for each place."""
        maps = self.body(x)
        verdict = self.verdict(maps)
        if self.fits is None or shown is None:
            return verdict
        wanted = self.fits(shown)[:, :, None, None]
        return verdict + (maps * wanted).mean(1, keepdim=True)


def least_squares(verdicts: Verdicts, wanted: float) -> Float[Tensor, "batch"]:
    """Gives ``(D(x) - wanted)^2``, the mean over places and scales (Huang et al., 2018), Eq. (5).

    Note: departs from Eq. (5), whose min and max are misprinted (the printed max over D is unbounded): D minimises
    ``(D(x) - 1)^2 + D(fake)^2`` and the generator ``(D(fake) - 1)^2``, as in (Mao et al., 2017).
    """
    return torch.stack([(verdict - wanted).square().mean(1) for verdict in verdicts]).mean(0)
