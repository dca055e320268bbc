"""The encoder of section 4.2 (Huang et al., 2018), for any size, channel and class count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from torch import nn

Norm = Literal["batch", "group", "none"]


def normalisation(norm: Norm, channels: int) -> nn.Module:
    """Makes the layer that follows a convolution; groups are as many as divide the channels, at most 8."""
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(math.gcd(channels, 8), channels)
    return nn.Identity()


def convolutional_encoder(
    channels: int, size: int, widths: Sequence[int], strides: Sequence[int], kernel: int, norm: Norm, out: int
) -> nn.Sequential:
    """Builds C5s1-256, C5s2-256, C5s2-256, F320 for the paper's numbers: Convolution-Norm-ReLU, then linear.

    Note: the paper does not state a padding; half a kernel keeps pictures of 8 px alive.
    """
    layers: list[nn.Module] = []
    for width, stride in zip(widths, strides, strict=True):
        layers += [
            nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=norm == "none"),
            normalisation(norm, width),
            nn.ReLU(),
        ]
        channels, size = width, -(-size // stride)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * size * size, out))
