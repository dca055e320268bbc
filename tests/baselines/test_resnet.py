"""Laws of the residual network (He et al., 2016)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gencaps.abilities import abilities
from gencaps.baselines.resnet.config import ResNetConfig
from gencaps.baselines.resnet.model import Block, ResNet
from gencaps.data.images import Labels
from gencaps.engine.pretrained import sketch
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo, Step, count_parameters
from gencaps.primitives.noise import Noise


def make(labels: Labels = "classes", names: int = 3, channels: int = 1, size: int = 8, **settings: Any) -> ResNet:
    torch.manual_seed(0)
    config = ResNetConfig(**{"width": 4, "blocks": (1, 1), **settings})
    return ResNet(config, PictureInfo(channels, size, tuple(map(str, range(names))), labels)).eval()


def given_logits(model: ResNet, logits: list[list[float]]) -> Tensor:
    """Makes a model see these log odds, whatever the picture; gives pictures for it."""
    model.logits = lambda x: torch.tensor(logits)  # pyright: ignore[reportAttributeAccessIssue]
    return torch.rand(len(logits), 1, 8, 8)


@pytest.mark.parametrize(
    ("channels", "names", "count"), [(3, 10, 11_173_962), (1, 10, 11_172_810), (3, 40, 11_189_352)]
)
def test_defaults_are_resnet_18(channels: int, names: int, count: int) -> None:
    """11,173,962 is the usual figure for CIFAR-10: two colours less are 2 * 9 * 64, 30 names more 30 * 513."""
    model = sketch("resnet", ResNetConfig(), PictureInfo(channels, 32, tuple(map(str, range(names)))))
    assert count_parameters(model.parameters()) == count
    # 1 in the stem, 2 in each of 8 blocks, and 3 where a stage's shape differs
    assert sum(isinstance(m, nn.Conv2d) for m in model.modules()) == 1 + 16 + 3


def test_loss_of_classes_by_hand() -> None:
    model = make()
    x = given_logits(model, [[0.0, 0.0, 0.0], [math.log(2), 0.0, 0.0]])
    # three even: ln 3; odds 2 : 1 : 1: -ln(1/4) for the second
    assert model.read(x, torch.tensor([2, 1])).tolist() == pytest.approx([math.log(3), math.log(4)])
    losses = model.losses(x, torch.tensor([2, 1]), Step(Noise(0)))
    assert losses.total.item() == pytest.approx((math.log(3) + math.log(4)) / 2)


def test_loss_of_attributes_is_their_mean_cross_entropy() -> None:
    model = make("attributes")
    x, y = given_logits(model, [[math.log(3), 0.0, -math.log(3)]] * 2), torch.tensor([[1, 0, 0], [0, 1, 1]])
    # probabilities 3/4, 1/2, 1/4
    right = (-math.log(3 / 4) - math.log(1 / 2) - math.log(3 / 4)) / 3
    wrong = (-math.log(1 / 4) - math.log(1 / 2) - math.log(1 / 4)) / 3
    assert model.read(x, y).tolist() == pytest.approx([right, wrong])
    assert model.losses(x, y, Step(Noise(0))).total.item() == pytest.approx((right + wrong) / 2)


def test_smoothing_spreads_a_share_of_the_target_evenly() -> None:
    s = 0.3
    classes = make(smoothing=s)
    x = given_logits(classes, [[math.log(2), 0.0, 0.0]])
    # targets 0.1 + 0.7, 0.1, 0.1 on probabilities 1/2, 1/4, 1/4
    expected = -(0.8 * math.log(1 / 2) + 0.2 * math.log(1 / 4))
    assert classes.read(x, torch.tensor([0])).item() == pytest.approx(expected)
    attributes = make("attributes", names=2, smoothing=s)
    x = given_logits(attributes, [[math.log(3), math.log(3)]])
    # 1 becomes 0.85 and 0 becomes 0.15, on probabilities of 3/4
    there = -(0.85 * math.log(3 / 4) + 0.15 * math.log(1 / 4))
    absent = -(0.15 * math.log(3 / 4) + 0.85 * math.log(1 / 4))
    assert attributes.read(x, torch.tensor([[1, 0]])).item() == pytest.approx((there + absent) / 2)


def test_classes_are_the_likeliest_and_attributes_those_likelier_than_not() -> None:
    logits = [[math.log(2), -1e9, 0.0], [-3.0, 4.0, 0.001]]
    classes, attributes = make(), make("attributes")
    seen = classes.classify(given_logits(classes, logits))
    assert seen.label.tolist() == [0, 1]
    assert seen.presence[0].tolist() == pytest.approx([2 / 3, 0.0, 1 / 3])
    seen = attributes.classify(given_logits(attributes, logits))
    assert seen.label.tolist() == [[1, 0, 0], [0, 1, 1]]
    assert seen.presence[0].tolist() == pytest.approx([2 / 3, 0.0, 1 / 2])


@pytest.mark.parametrize(("blocks", "width"), [((1,), 4), ((1, 1), 8), ((2, 1, 1), 16), ((1, 1, 1, 1), 32)])
def test_features_double_with_every_stage_and_are_what_the_last_layer_reads(
    blocks: tuple[int, ...], width: int
) -> None:
    model, x = make(blocks=blocks, dropout=0.5), torch.rand(2, 1, 8, 8)
    features = model.features(x)
    assert features.shape == (2, width)
    torch.testing.assert_close(model.logits(x), features @ model.head.weight.T + model.head.bias)


@pytest.mark.parametrize(("stem_stride", "side"), [(1, 8), (2, 4), (4, 2)])
def test_every_stage_but_the_first_halves_the_maps_and_so_does_the_stem_stride(stem_stride: int, side: int) -> None:
    model = make(blocks=(2, 2, 2), stem_stride=stem_stride, size=32)
    x = torch.rand(1, 1, 32, 32)
    maps = model.trunk[:-2](x)
    # 32, 16, 8
    assert maps.shape == (1, 16, side, side)
    torch.testing.assert_close(model.features(x), maps.mean((2, 3)))


def test_a_block_adds_to_what_came_in() -> None:
    """With its body silenced it passes on what is not negative: relu(0 + x)."""
    block, x = Block(4, 4, 1).eval(), torch.randn(2, 4, 5, 5)
    body = block.body[-1]
    assert isinstance(body, nn.Sequential)
    norm = body[-1]
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.weight is not None
    full = block(x)
    nn.init.zeros_(norm.weight)
    assert torch.equal(block(x), x.clamp(min=0))
    assert not torch.equal(full, x.clamp(min=0))
    assert not list(block.shortcut.parameters())
    for channels, width, stride in ((4, 8, 1), (4, 4, 2), (4, 8, 2)):
        shortcut = Block(channels, width, stride).shortcut
        assert count_parameters(shortcut.parameters()) == channels * width + 2 * width


def test_dropout_acts_in_training_alone() -> None:
    model, x = make(dropout=0.5), torch.rand(4, 1, 8, 8)
    assert torch.equal(model.logits(x), model.logits(x))
    model.dropout.train()
    torch.manual_seed(0)
    assert not torch.equal(model.logits(x), model.logits(x))


@pytest.mark.parametrize("labels", ["classes", "attributes"])
def test_training_learns_the_labels(labels: Labels) -> None:
    model, x = make(labels), torch.rand(6, 1, 8, 8)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    y = y if labels == "classes" else torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]])[y]
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(50):
        optimizer.zero_grad()
        model.losses(x, y, Step(Noise(0))).total.backward()
        optimizer.step()
    assert torch.equal(model.classify(x).label, y)


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (1, 28), (3, 32), (3, 33)])
def test_any_size_and_channels(channels: int, size: int) -> None:
    model = make(channels=channels, size=size, blocks=(1, 1, 1, 1))
    assert model.classify(torch.rand(2, channels, size, size)).presence.shape == (2, 3)


def test_abilities_are_found_by_protocol() -> None:
    assert abilities(make()) == ("classify",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("width", 0),
        ("stem_stride", 0),
        ("blocks", ()),
        ("blocks", (2, 0)),
        ("smoothing", 1.0),
        ("smoothing", -0.1),
        ("dropout", 1.0),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(GencapsError, match=f"model.{field} is"):
        ResNetConfig(**{field: value})  # pyright: ignore[reportArgumentType]
