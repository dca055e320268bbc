"""Dense networks: which layers stand where, and which pixel comes from which number."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gencaps.primitives.networks import dense_decoder, dense_layers


def fill(layer: nn.Module, weight: list[list[float]], bias: list[float]) -> None:
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))


@pytest.mark.parametrize(("widths", "kinds"), [((), []), ((5,), ["L"]), ((5, 4), ["L", "R", "L"])])
def test_relu_stands_between_layers_and_never_after_the_last(widths: tuple[int, ...], kinds: list[str]) -> None:
    layers = dense_layers(3, widths)
    assert [type(layer).__name__[0] for layer in layers] == kinds
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linear] == list(
        zip((3, *widths), widths, strict=False)
    )


def test_two_layers_by_hand() -> None:
    layers = dense_layers(2, (2, 1))
    fill(layers[0], [[1.0, -1.0], [-1.0, 1.0]], [0.5, 0.0])
    fill(layers[2], [[2.0, 3.0]], [-10.0])
    # hidden: relu(3 - 1 + 0.5) = 2.5 and relu(-2) = 0;  2 * 2.5 + 3 * 0 - 10 = -5, which no ReLU cuts off
    assert nn.Sequential(*layers)(torch.tensor([[3.0, 1.0]])).item() == -5.0


def test_decoder_fills_channel_by_channel_and_row_by_row() -> None:
    decoder = dense_decoder(4, (), 3, 5)
    fill(decoder[0], [[0.0] * 4] * 75, list(range(75)))
    picture = decoder(torch.zeros(1, 4))
    assert picture.shape == (1, 3, 5, 5)
    # channel 2, row 1, column 4: 2 * 25 + 1 * 5 + 4
    assert picture[0, 2, 1, 4].item() == 59.0


def test_decoder_of_the_papers_has_their_three_layers() -> None:
    decoder = dense_decoder(160, (512, 1024), 1, 28)
    linear = [layer for layer in decoder if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linear] == [(160, 512), (512, 1024), (1024, 784)]
    # it ends in logits: nothing keeps them within 0 and 1
    with torch.no_grad():
        linear[-1].bias.fill_(-7.0)
    assert decoder(torch.zeros(2, 160)).max() < -5
