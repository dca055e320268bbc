"""The encoders and decoders of sections 4.1 and 4.2 (Huang et al., 2018), for any size, channel and entity count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.errors import GencapsError
from gencaps.primitives.layers import DenseCapsules, PrimaryCapsules
from gencaps.primitives.squash import unsquash

Norm = Literal["batch", "group", "none"]
Maps = Float[Tensor, "batch channels height width"]
PRIMARY, PRIMARY_DIM, ROUNDS = 16, 8, 3
"""Kinds of primary capsules, numbers in each, and rounds of routing."""
SMALLEST = 4
"""Pixels a side of the innermost feature maps of the residual networks."""


def normalisation(norm: Norm, channels: int) -> nn.Module:
    """Makes the layer that follows a convolution; groups are as many as divide the channels, at most 8."""
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(math.gcd(channels, 8), channels)
    return nn.Identity()


def convolution(channels: int, width: int, kernel: int, norm: Norm, stride: int = 1) -> nn.Sequential:
    """Builds Convolution-Norm-ReLU: C5s1-k and the like.

    Note: the paper does not state a padding; half a kernel keeps pictures of 8 px alive.
    """
    layers = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=norm == "none")
    return nn.Sequential(layers, normalisation(norm, width), nn.ReLU())


def convolutions(
    channels: int, size: int, widths: Sequence[int], strides: Sequence[int], kernel: int, norm: Norm
) -> tuple[list[nn.Module], int, int]:
    """Lists convolutions one after the other; gives the channels and the side that they end with, too."""
    layers: list[nn.Module] = []
    for width, stride in zip(widths, strides, strict=True):
        layers += convolution(channels, width, kernel, norm, stride)
        channels, size = width, -(-size // stride)
    return layers, channels, size


def convolutional_encoder(
    channels: int, size: int, widths: Sequence[int], strides: Sequence[int], kernel: int, norm: Norm, out: int
) -> nn.Sequential:
    """Builds C5s1-256, C5s2-256, C5s2-256, F320 for the paper's numbers (section 4.2), ending in a linear layer."""
    layers, channels, size = convolutions(channels, size, widths, strides, kernel, norm)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * size * size, out))


class RoutedEncoder(nn.Module):
    """Finds the entities' Gaussians by routing between capsules, the direction that section 4.2 leaves open.

    Convolutions, primary capsules, and one routed capsule of 2 dim numbers an entity, which are taken before their
    squash, scaled and shifted into means and log variances.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        widths: Sequence[int],
        strides: Sequence[int],
        kernel: int,
        norm: Norm,
        entities: int,
        dim: int,
    ) -> None:
        super().__init__()
        layers, channels, size = convolutions(channels, size, widths, strides, kernel, norm)
        self.body = nn.Sequential(*layers)
        window = min(kernel, size)
        self.primary = PrimaryCapsules(channels, PRIMARY, PRIMARY_DIM, window, 1)
        count = self.primary.count(size, size)
        self.routed = DenseCapsules(count, PRIMARY_DIM, entities, 2 * dim, ROUNDS)
        self.scale = nn.Parameter(torch.ones(entities, 2 * dim))
        self.shift = nn.Parameter(torch.zeros(entities, 2 * dim))

    def forward(self, x: Maps) -> Float[Tensor, "batch features"]:
        """Gives all means, then all log variances, each by entity and dimension."""
        capsules = self.routed(self.primary(self.body(x)).float())
        numbers = unsquash(capsules) * self.scale + self.shift
        return numbers.unflatten(2, (2, -1)).transpose(1, 2).flatten(1)


class Residual(nn.Module):
    """Rk of section 4.1: two 3 x 3 Convolution-Norm-ReLU, and a 1 x 1 convolution beside them where widths differ."""

    def __init__(self, channels: int, width: int, norm: Norm) -> None:
        super().__init__()
        self.body = nn.Sequential(convolution(channels, width, 3, norm), convolution(width, width, 3, norm))
        self.beside = nn.Identity() if channels == width else nn.Conv2d(channels, width, 1)

    def forward(self, x: Maps) -> Float[Tensor, "batch out height width"]:
        return self.body(x) + self.beside(x)


def stages(size: int, widths: Sequence[int], what: str) -> int:
    """Counts the halvings of a picture to 4 px; drops none, but says what to do where there are too few widths."""
    count = round(math.log2(size / SMALLEST)) if size >= SMALLEST else 0
    if count < 1 or SMALLEST << count != size:
        raise GencapsError(f"{what} takes 8, 16, 32, 64, 128 or 256 px, not {size}: give --train.size 64")
    if len(widths) < count:
        raise GencapsError(f"{what} of {size} px halves {count} times and has {len(widths)} widths: give {count}")
    return count


class GroupedHead(nn.Conv2d):
    """C4s1gN of section 4.1: one group of filters an attribute, as large as the maps, so that each gives one number.

    Such a convolution is one matrix product a group, and as such it is computed: libraries' grouped convolutions
    are slow, most of all backwards.
    """

    def __init__(self, channels: int, out: int, side: int, groups: int) -> None:
        super().__init__(channels, out, side, groups=groups)

    def forward(self, input: Maps) -> Float[Tensor, "batch out 1 1"]:
        x = input.reshape(len(input), self.groups, -1).transpose(0, 1)
        made = x @ self.weight.reshape(self.groups, -1, x.shape[2]).transpose(1, 2)
        out = made.transpose(0, 1).flatten(1)
        return (out if self.bias is None else out + self.bias)[..., None, None]


class ResidualEncoder(nn.Module):
    """C5s1-16d, R32d, R64d, R128d, R256d, R512d, C1s1-10240, C4s1g40-5120 of section 4.1 for 256 px.

    ``d`` halves by averaging. Smaller pictures drop the outer stages: 64 px begins with C5s1-64d. The last
    convolution has one group of filters an attribute, so that no attribute looks at another's features.

    Note: departs from section 4.1: no normalisation and ReLU after the last convolution, whose means have a sign.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        widths: Sequence[int],
        kernel: int,
        norm: Norm,
        head: int,
        groups: int,
        states: int,
        rest: int,
        dim: int,
    ) -> None:
        super().__init__()
        kept = widths[len(widths) - stages(size, widths, "the residual encoder") :]
        layers: list[nn.Module] = [convolution(channels, kept[0], kernel, norm), nn.AvgPool2d(2)]
        for here, there in pairwise(kept):
            layers += [Residual(here, there, norm), nn.AvgPool2d(2)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Sequential(
            *convolution(kept[-1], head * groups, 1, norm),
            GroupedHead(head * groups, 2 * groups * states * dim, SMALLEST, groups),
        )
        self.rest = nn.Conv2d(kept[-1], 2 * rest * dim, SMALLEST) if rest else None
        self.groups = groups

    def forward(self, x: Maps) -> Float[Tensor, "batch features"]:
        """Gives all means, then all log variances, each by group, state and dimension, the rest's last."""
        maps = self.body(x)
        # a group's filters give its means and its log variances side by side
        parts = [self.head(maps).flatten(1).unflatten(1, (self.groups, 2, -1)).transpose(1, 2).flatten(2)]
        if self.rest is not None:
            parts.append(self.rest(maps).flatten(1).unflatten(1, (2, -1)))
        return torch.cat(parts, 2).flatten(1)


def residual_decoder(
    features: int, widths: Sequence[int], kernel: int, norm: Norm, channels: int, size: int
) -> nn.Sequential:
    """Builds F8192, R512u, R256u, R128u, R64u, R32u, R16u, R16, c5s1-3 of section 4.1 for 256 px, ending in logits.

    ``u`` doubles by repeating. Smaller pictures drop the outer stages.
    """
    kept = widths[: stages(size, widths, "the residual decoder")]
    layers: list[nn.Module] = [
        nn.Linear(features, kept[0] * SMALLEST**2),
        nn.Unflatten(1, (kept[0], SMALLEST, SMALLEST)),
    ]
    for here, there in pairwise((kept[0], *kept)):
        layers += [Residual(here, there, norm), nn.Upsample(scale_factor=2)]
    layers += [Residual(kept[-1], kept[-1], norm), nn.Conv2d(kept[-1], channels, kernel, padding=kernel // 2)]
    return nn.Sequential(*layers)
