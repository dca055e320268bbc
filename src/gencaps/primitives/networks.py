"""Dense networks that several systems share."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


def dense_layers(features: int, widths: Sequence[int]) -> list[nn.Module]:
    """Lists linear layers of the given widths with ReLU between them, none after the last."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(features, width), nn.ReLU()]
        features = width
    return layers[:-1]


def dense_decoder(features: int, widths: Sequence[int], channels: int, size: int) -> nn.Sequential:
    """Builds F512, F1024, F784 for (Sabour et al., 2017) and (Huang et al., 2018), ending in a picture's logits."""
    layers = dense_layers(features, (*widths, channels * size * size))
    return nn.Sequential(*layers, nn.Unflatten(1, (channels, size, size)))
