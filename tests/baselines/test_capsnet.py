"""Laws of the capsule network (Sabour et al., 2017)."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gencaps.abilities import abilities
from gencaps.baselines.capsnet.config import CapsNetConfig
from gencaps.baselines.capsnet.model import CapsNet, Code
from gencaps.engine.pretrained import sketch
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo, Step, count_parameters
from gencaps.primitives.noise import Noise
from tests.helpers import refused

SMALL = CapsNetConfig(channels=8, kernel=3, capsules=3, primary_dim=4, dim=5, decoder=(16,))


def make(config: CapsNetConfig = SMALL, channels: int = 1, size: int = 8, classes: int = 3) -> CapsNet:
    torch.manual_seed(0)
    return CapsNet(config, PictureInfo(channels, size, tuple(map(str, range(classes))))).eval()


def given_lengths(model: CapsNet, lengths: list[list[float]]) -> None:
    """Makes a model see capsules of these lengths, whatever the picture; all of them point the same way."""
    presence = torch.tensor(lengths)
    pose = presence[..., None] * nn.functional.one_hot(torch.tensor(1), model.config.dim)
    model.encode = lambda x: Code(pose, presence)  # pyright: ignore[reportAttributeAccessIssue]


def test_margin_loss_by_hand() -> None:
    model = make()
    given_lengths(model, [[0.8, 0.3, 0.05], [0.95, 0.1, 0.4], [0.2, 0.97, 0.0]])
    margin, _ = model.analyse(torch.rand(3, 1, 8, 8), torch.tensor([0, 2, 1]))
    expected = [
        0.03,  # (0.9 - 0.8)^2 + 0.5 (0.3 - 0.1)^2; 0.05 is short enough
        0.61125,  # (0.9 - 0.4)^2 + 0.5 (0.95 - 0.1)^2
        0.005,  # 0.5 (0.2 - 0.1)^2; 0.97 is long enough
    ]
    assert margin.tolist() == pytest.approx(expected, abs=1e-6)


def test_reconstruction_is_the_squared_error_summed_over_pixels_of_the_labelled_capsule() -> None:
    model, x, y = make(channels=2), torch.rand(4, 2, 8, 8), torch.tensor([2, 0, 1, 1])
    pose = model.encode(x).pose
    x_hat = torch.sigmoid(model.decoder((pose * torch.eye(3)[y][..., None]).flatten(1)))
    torch.testing.assert_close(model.analyse(x, y)[1], ((x_hat - x) ** 2).sum((1, 2, 3)))


@pytest.mark.parametrize("weight", [0.0005, 3.0])
def test_loss_is_margin_plus_weighted_reconstruction(weight: float) -> None:
    config = CapsNetConfig(8, 3, 3, 4, dim=5, decoder=(16,), recon_weight=weight)
    model, x, y = make(config), torch.rand(4, 1, 8, 8), torch.tensor([2, 0, 1, 1])
    margin, recon = model.analyse(x, y)
    assert recon is not None
    losses = model.losses(x, y, Step(Noise(0)))
    torch.testing.assert_close(losses.total, margin.mean() + weight * recon.mean())
    torch.testing.assert_close(losses.terms["recon"], recon.mean())
    assert CapsNetConfig().recon_weight == 0.0005  # section 4.1


def test_painting_looks_at_the_labelled_capsule_and_at_no_other() -> None:
    model = make()
    pose, y = torch.randn(2, 3, 5), torch.tensor([1, 2])
    mask = model.target(y)
    before = model.paint(pose, mask)
    for picture, label in enumerate(y.tolist()):
        for k in range(3):
            moved = pose.clone()
            moved[picture, k] += 1.0
            change = (model.paint(moved, mask) - before).abs().flatten(1).amax(1)
            assert (change[picture] > 1e-4) == (k == label)
            assert change[1 - picture] == 0


def test_decoder_sees_every_capsule_not_one() -> None:
    """The trap of 16 numbers for 160: the same numbers in another class's place are another picture."""
    model = make()
    first = model.decoder[0]
    assert isinstance(first, nn.Linear)
    assert first.in_features == 3 * 5
    pose = torch.ones(1, 3, 5)
    a, b = (model.paint(pose, model.target(torch.tensor([k]))) for k in (0, 1))
    assert (a - b).abs().max() > 1e-3


def test_presence_is_the_capsules_length_below_one_and_the_longest_is_the_class() -> None:
    model, x = make(), torch.rand(6, 1, 8, 8)
    pose, presence = model.encode(x)
    assert pose.shape == (6, 3, 5)
    torch.testing.assert_close(presence, pose.square().sum(-1).sqrt())
    for scale in (1.0, 1e4):
        seen = model.encode(scale * x).presence
        assert (seen >= 0).all()
        assert (seen < 1).all()
    given_lengths(model, [[0.3, 0.2, 0.9], [0.5, 0.6, 0.1]])
    assert model.classify(x[:2]).label.tolist() == [2, 1]
    assert model.classify(x[:2]).presence.tolist() == [pytest.approx([0.3, 0.2, 0.9]), pytest.approx([0.5, 0.6, 0.1])]


def test_reconstruction_paints_the_longest_capsule_and_draws_nothing() -> None:
    model, x = make(), torch.rand(5, 1, 8, 8)
    pose, presence = model.encode(x)
    expected = model.paint(pose, model.target(presence.argmax(1)))
    for seed, noise in ((1, None), (2, Noise(7))):
        torch.manual_seed(seed)
        assert torch.equal(model.reconstruct(x, noise), expected)


@pytest.mark.parametrize(
    ("size", "channels", "classes", "kernel"),
    [(28, 1, 10, 9), (32, 3, 10, 9), (40, 1, 10, 9), (8, 1, 10, 3), (17, 2, 4, 9), (13, 3, 2, 1)],
)
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_any_size_channels_and_classes(size: int, channels: int, classes: int, kernel: int, stride: int) -> None:
    config = CapsNetConfig(4, kernel, 2, 3, stride, 4, decoder=(8,))
    model, x = make(config, channels, size, classes), torch.rand(2, channels, size, size)
    assert model.reconstruct(x).shape == x.shape
    assert model.classify(x).presence.shape == (2, classes)
    losses = model.losses(x, torch.tensor([0, classes - 1]), Step(Noise(0)))
    losses.total.backward()
    assert losses.total.isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_defaults_are_the_published_network() -> None:
    model = sketch("capsnet", CapsNetConfig(), PictureInfo(1, 28, tuple("0123456789")))
    assert isinstance(model, CapsNet)
    decoder = count_parameters(model.decoder.parameters())
    assert decoder == 160 * 512 + 512 + 512 * 1024 + 1024 + 1024 * 784 + 784
    # 9 x 9 filters: 1 to 256, and 256 to 32 x 8; then 32 x 6 x 6 capsules of 8, each with 8 x 16 numbers a class
    capsules = 81 * 256 + 256 + 81 * 256 * 256 + 256 + 1152 * 8 * 16 * 10
    assert count_parameters(model.parameters()) - decoder == capsules == 6_804_224  # "6.8M", section 5


def test_no_reconstruction_means_no_gradient_to_the_decoder() -> None:
    model = make(CapsNetConfig(8, 3, 3, 4, dim=5, decoder=(16,), recon_weight=0.0))
    x, y = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
    losses = model.losses(x, y, Step(Noise(0)))
    losses.total.backward()
    assert losses.terms.keys() == {"margin"}
    assert all(p.grad is None for p in model.decoder.parameters())
    assert all(p.grad is not None for p in [*model.convolution.parameters(), *model.routed.parameters()])
    assert model.reconstruct(x).shape == x.shape


def test_first_layer_is_rectified() -> None:
    """Where all its filters answer below 0, no picture differs from another."""
    model = make()
    with torch.no_grad():
        assert model.convolution.bias is not None
        model.convolution.bias.fill_(-100.0)
    pose = model.encode(torch.rand(2, 1, 8, 8)).pose
    assert torch.equal(pose[0], pose[1])


def test_a_black_picture_gives_finite_gradients() -> None:
    """The trap of a length's gradient at 0: without biases all capsules are 0."""
    model = make()
    with torch.no_grad():
        for layer in (model.convolution, *model.primary.modules()):
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                layer.bias.zero_()
    x = torch.zeros(2, 1, 8, 8)
    assert model.encode(x).presence.max() < 1e-3
    model.losses(x, torch.tensor([0, 1]), Step(Noise(0))).total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_training_makes_the_own_capsule_long_and_the_others_short() -> None:
    model, x = make(), torch.rand(6, 1, 8, 8)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        model.losses(x, y, Step(Noise(0))).total.backward()
        optimizer.step()
    presence, own = model.encode(x).presence, torch.eye(3).bool()[y]
    assert presence[own].min() > 0.6
    assert presence[~own].max() < 0.4


def test_abilities_are_found_by_protocol() -> None:
    assert abilities(make()) == ("classify", "encode", "reconstruct")


def test_of_attributes_any_number_may_be_present() -> None:
    """MultiMNIST, section 6: every capsule longer than a half is there, and all of them are painted."""
    torch.manual_seed(0)
    model = CapsNet(SMALL, PictureInfo(1, 8, ("a", "b", "c"), "attributes", "two")).eval()
    x = torch.rand(2, 1, 8, 8)
    pose = torch.randn(2, 3, 5)
    mask = model.target(torch.tensor([[1, 0, 1], [0, 0, 0]], dtype=torch.uint8))
    assert mask.tolist() == [[True, False, True], [False, False, False]]
    torch.testing.assert_close(model.paint(pose, mask)[0], model.paint(pose * mask[..., None], mask | True)[0])
    given_lengths(model, [[0.6, 0.2, 0.9], [0.4, 0.5, 0.1]])
    assert model.classify(x).label.tolist() == [[1, 0, 1], [0, 0, 0]]
    # T = (1, 0, 1): 0.3^2 + 0.5 * 0.1^2 + 0^2; T = (0, 0, 0): 0.5 (0.3^2 + 0.4^2 + 0)
    margin, _ = model.analyse(x, torch.tensor([[1, 0, 1], [0, 0, 0]]))
    assert margin.tolist() == pytest.approx([0.09 + 0.005, 0.5 * (0.09 + 0.16)])


@pytest.mark.parametrize(("size", "fits"), [(8, 4), (9, 5), (16, 8), (17, 9)])
def test_a_kernel_that_does_not_fit_is_refused_with_one_that_does(size: int, fits: int) -> None:
    """Two kernels of k need k + k - 1 pixels."""
    for kernel in (fits + 1, 20):
        config = CapsNetConfig(4, kernel, 2, 3, decoder=(8,))
        words = (f"model.kernel {kernel}", f"{size} px", f"--model.kernel {fits} or less")
        refused(lambda config=config: make(config, size=size), *words)
    assert make(CapsNetConfig(4, fits, 2, 3, decoder=(8,)), size=size).classify(torch.rand(1, 1, size, size))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, 0) for name in ("channels", "kernel", "capsules", "primary_dim", "stride", "dim", "iterations")),
        ("decoder", (8, 0)),
        ("recon_weight", -0.1),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(GencapsError, match=f"model.{field} is"):
        CapsNetConfig(**{field: value})  # pyright: ignore[reportArgumentType]
