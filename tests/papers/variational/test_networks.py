"""Laws of the encoders and decoders of section 4.1 (Huang et al., 2018)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gencaps.engine.recipe import make_recipe
from gencaps.model import PictureInfo, Step
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.papers.variational.networks import (
    GroupedHead,
    Residual,
    ResidualEncoder,
    convolution,
    residual_decoder,
    stages,
)
from gencaps.primitives.noise import Noise
from tests.helpers import refused

WIDTHS = (16, 32, 64, 128, 256, 512)


def paper_encoder(size: int) -> ResidualEncoder:
    return ResidualEncoder(3, size, WIDTHS, 5, "batch", 256, 40, 2, 0, 32)


def small_encoder(groups: int = 3, states: int = 2, rest: int = 0, dim: int = 4, **changes: Any) -> ResidualEncoder:
    torch.manual_seed(0)
    values = {"channels": 1, "size": 8, "widths": (6,), "kernel": 3, "norm": "none", "head": 5, **changes}
    return ResidualEncoder(**values, groups=groups, states=states, rest=rest, dim=dim).eval()


def halves(network: nn.Module, kind: type[nn.Module]) -> int:
    return sum(isinstance(module, kind) for module in network.modules())


def test_the_papers_encoder_has_its_published_layers() -> None:
    """C5s1-16d, R32d, R64d, R128d, R256d, R512d, C1s1-10240, C4s1g40-5120 for 256 px."""
    with torch.device("meta"):
        encoder = paper_encoder(256)
        x = torch.empty(2, 3, 256, 256)
        first = encoder.body[0][0]  # pyright: ignore[reportIndexIssue]
        assert isinstance(first, nn.Conv2d)
        assert (first.in_channels, first.out_channels, first.kernel_size, first.stride) == (3, 16, (5, 5), (1, 1))
        shapes = []
        for layer in encoder.body:
            x = layer(x)
            if isinstance(layer, nn.AvgPool2d):
                shapes.append(tuple(x.shape[1:]))
        assert shapes == [(16, 128, 128), (32, 64, 64), (64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]
        assert halves(encoder, Residual) == 5
        wide, last = (m for m in encoder.head if isinstance(m, nn.Conv2d))
        assert (wide.in_channels, wide.out_channels, wide.kernel_size) == (512, 10240, (1, 1))
        assert (last.in_channels, last.out_channels, last.kernel_size) == (10240, 5120, (4, 4))
        assert (last.groups, last.stride, last.padding) == (40, (1, 1), (0, 0))
        assert encoder(torch.empty(2, 3, 256, 256)).shape == (2, 2 * 80 * 32)


def test_the_papers_decoder_has_its_published_layers() -> None:
    """F8192, R512u, R256u, R128u, R64u, R32u, R16u, R16, c5s1-3 for 256 px."""
    with torch.device("meta"):
        decoder = residual_decoder(80 * 32, WIDTHS[::-1], 5, "batch", 3, 256)
        x, shapes = torch.empty(2, 80 * 32), []
        for layer in decoder:
            x = layer(x)
            if isinstance(layer, nn.Linear):
                assert layer.out_features == 8192
            if isinstance(layer, Residual):
                shapes.append(tuple(x.shape[1:]))
        inner = [(512, 4, 4), (256, 8, 8), (128, 16, 16), (64, 32, 32), (32, 64, 64), (16, 128, 128)]
        assert shapes == [*inner, (16, 256, 256)]
        assert halves(decoder, nn.Upsample) == 6
        last = decoder[-1]
        assert isinstance(last, nn.Conv2d)
        assert (last.in_channels, last.out_channels, last.kernel_size, last.stride) == (16, 3, (5, 5), (1, 1))
        assert x.shape == (2, 3, 256, 256)


def test_the_celeba_preset_is_the_papers_network_at_its_size() -> None:
    config: Any = make_recipe("variational", preset="celeba").model
    names = tuple(f"a{i}" for i in range(40))
    with torch.device("meta"):
        model = VariationalCapsules(config, PictureInfo(3, 256, names, "attributes"))
    assert config.widths == WIDTHS
    assert config.decoder == WIDTHS[::-1]
    assert [m.out_channels for m in model.encoder.head if isinstance(m, nn.Conv2d)] == [10240, 5120]  # pyright: ignore[reportGeneralTypeIssues]
    assert model.encode(torch.empty(1, 3, 256, 256, device="meta")).mu.shape == (1, 80, 32)


@pytest.mark.parametrize(("size", "first"), [(32, 128), (64, 64), (128, 32), (256, 16)])
def test_smaller_pictures_drop_the_outer_stages(size: int, first: int) -> None:
    kept = WIDTHS[WIDTHS.index(first) :]
    with torch.device("meta"):
        encoder, decoder = paper_encoder(size), residual_decoder(80 * 32, WIDTHS[::-1], 5, "batch", 3, size)
        convs = [m for m in encoder.body.modules() if isinstance(m, nn.Conv2d)]
        assert convs[0].out_channels == first
        assert halves(encoder, nn.AvgPool2d) == halves(decoder, nn.Upsample) == len(kept)
        assert encoder.body(torch.empty(1, 3, size, size)).shape == (1, 512, 4, 4)
        assert encoder(torch.empty(1, 3, size, size)).shape == (1, 5120)
        assert decoder(torch.empty(1, 80 * 32)).shape == (1, 3, size, size)
        blocks = [m.body[0][0].out_channels for m in decoder if isinstance(m, Residual)]  # pyright: ignore[reportIndexIssue, reportAttributeAccessIssue]
        assert blocks == [*kept[::-1], first]


@pytest.mark.parametrize("size", [1, 4, 7, 12, 28, 48, 63, 65, 100])
def test_sizes_that_do_not_halve_to_four_are_refused_with_a_remedy(size: int) -> None:
    refused(lambda: stages(size, WIDTHS, "the residual encoder"), "the residual encoder", str(size), "--train.size 64")
    refused(lambda: paper_encoder(size), f"not {size}")
    refused(lambda: residual_decoder(8, WIDTHS[::-1], 5, "batch", 3, size), "the residual decoder", f"not {size}")


def test_too_few_widths_are_refused_with_how_many_there_must_be() -> None:
    assert [stages(size, WIDTHS, "it") for size in (8, 16, 32, 64, 128, 256)] == [1, 2, 3, 4, 5, 6]
    refused(lambda: stages(64, (8, 8), "the residual encoder"), "64 px", "4 times", "2 widths", "give 4")
    config = VariationalConfig(encoder="residual", painter="residual", widths=(8, 8), decoder=(8, 8))
    info = PictureInfo(1, 16, ("a", "b"))
    assert VariationalCapsules(config, info).reconstruct(torch.rand(1, 1, 16, 16)).shape == (1, 1, 16, 16)
    refused(lambda: VariationalCapsules(config, PictureInfo(1, 32, ("a", "b"))), "32 px", "give 3")


@pytest.mark.parametrize("rest", [0, 2])
def test_no_attribute_looks_at_anothers_filters(rest: int) -> None:
    """Changing one group's filters, of the last convolution or of the one before it, moves its capsules alone."""
    groups, states, dim, head = 3, 2, 4, 5
    x = torch.rand(2, 1, 8, 8)

    def capsules(encoder: ResidualEncoder) -> Tensor:
        return encoder(x).unflatten(1, (2, groups * states + rest, dim))

    for layer, each in ((-1, 2 * states * dim), (0, head)):
        for group in range(groups):
            encoder = small_encoder(groups, states, rest, dim)
            with torch.no_grad():
                encoder.head[0].bias += 2.0  # pyright: ignore[reportOperatorIssue, reportArgumentType]  # every feature is alive
            before, conv = capsules(encoder), encoder.head[layer]
            assert isinstance(conv, nn.Conv2d)
            with torch.no_grad():
                conv.weight[group * each : (group + 1) * each] += torch.rand(each, *conv.weight.shape[1:])
            moved = (capsules(encoder) - before).abs().sum((0, 3)) > 1e-6  # (mean or log variance, capsule)
            assert moved.nonzero()[:, 1].unique().tolist() == [group * states, group * states + 1]
            assert moved[:, group * states : (group + 1) * states].all()


def test_means_come_before_log_variances_by_group_state_and_dimension() -> None:
    """A bias alone passes through: group g gives its states' means, then its states' log variances."""
    groups, states, rest, dim = 3, 2, 1, 2
    encoder = small_encoder(groups, states, rest, dim)
    last, always = encoder.head[-1], encoder.rest
    assert isinstance(last, nn.Conv2d)
    assert isinstance(always, nn.Conv2d)
    for conv in (last, always):
        assert conv.bias is not None
        nn.init.zeros_(conv.weight)
    with torch.no_grad():
        last.bias.copy_(torch.arange(24.0))  # pyright: ignore[reportOptionalMemberAccess]
        always.bias.copy_(torch.arange(100.0, 104.0))  # pyright: ignore[reportOptionalMemberAccess]
    mu, log_var = encoder(torch.rand(1, 1, 8, 8))[0].unflatten(0, (2, groups * states + rest, dim)).tolist()
    assert mu == [[0, 1], [2, 3], [8, 9], [10, 11], [16, 17], [18, 19], [100, 101]]
    assert log_var == [[4, 5], [6, 7], [12, 13], [14, 15], [20, 21], [22, 23], [102, 103]]


def test_capsules_that_are_always_on_see_what_no_attribute_does() -> None:
    """The rest has its own convolution: it moves when that moves, and nothing else does."""
    encoder, x = small_encoder(rest=2), torch.rand(2, 1, 8, 8)
    before = encoder(x).unflatten(1, (2, 8, 4))
    assert encoder.rest is not None
    with torch.no_grad():
        encoder.rest.weight += torch.randn(encoder.rest.weight.shape)
    moved = (encoder(x).unflatten(1, (2, 8, 4)) - before).abs().sum((0, 1, 3)) > 1e-6
    assert moved.tolist() == [False] * 6 + [True] * 2


def test_classes_share_one_group_of_filters() -> None:
    encoder = small_encoder(groups=1, states=10, dim=3)
    last = encoder.head[-1]
    assert isinstance(last, nn.Conv2d)
    assert last.groups == 1
    assert encoder(torch.rand(2, 1, 8, 8)).shape == (2, 2 * 10 * 3)


def test_residual_block_adds_what_came_in() -> None:
    """With its last filters at zero, a block of equal widths is the identity and one of others a 1 x 1 convolution."""
    x = torch.randn(2, 4, 5, 5)
    for width in (4, 6):
        block = Residual(4, width, "none").eval()
        last = block.body[1][0]  # pyright: ignore[reportIndexIssue]
        assert isinstance(last, nn.Conv2d)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)  # pyright: ignore[reportArgumentType]
        if width == 4:
            assert torch.equal(block(x), x)
        else:
            beside = block.beside
            assert isinstance(beside, nn.Conv2d)
            wanted = torch.einsum("oc,nchw->nohw", beside.weight[:, :, 0, 0], x) + beside.bias[:, None, None]  # pyright: ignore[reportOptionalSubscript]
            torch.testing.assert_close(block(x), wanted)


def test_residual_block_is_its_branch_plus_its_input() -> None:
    torch.manual_seed(0)
    block, x = Residual(4, 4, "batch").eval(), torch.randn(2, 4, 5, 5)
    torch.testing.assert_close(block(x) - x, block.body(x))
    assert (block(x) - x).min() >= 0  # the branch ends in ReLU
    assert (block(x) - x).max() > 0


@pytest.mark.parametrize("norm", ["batch", "group", "none"])
def test_convolution_normalises_and_is_never_negative(norm: Any) -> None:
    torch.manual_seed(0)
    layer, x = convolution(3, 8, 5, norm, stride=2), 100 * torch.randn(4, 3, 9, 9) + 7
    out = layer(x)
    assert out.shape == (4, 8, 5, 5)
    assert out.min() == 0
    assert (out.max() > 20) == (norm == "none")
    assert (layer[0].bias is None) == (norm != "none")


@pytest.mark.parametrize("rest", [0, 1])
@pytest.mark.parametrize("painter", ["dense", "convolutional", "residual"])
@pytest.mark.parametrize("encoder", ["convolutional", "residual"])
def test_every_encoder_goes_with_every_painter(encoder: Any, painter: Any, rest: int) -> None:
    config = VariationalConfig(
        3, (6, 6), (1, 2), 3, decoder=(8, 8), encoder=encoder, painter=painter, head=4, rest=rest, flag=True
    )
    for labels, y in (("classes", torch.tensor([0, 2])), ("attributes", torch.tensor([[0, 1, 1], [1, 0, 0]]))):
        model = VariationalCapsules(config, PictureInfo(3, 16, ("a", "b", "c"), labels))  # pyright: ignore[reportArgumentType]
        x = torch.rand(2, 3, 16, 16)
        model.losses(x, y, Step(Noise(0))).total.backward()
        missing = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
        assert missing == []
        assert model.eval().reconstruct(x).shape == x.shape


def test_the_grouped_head_is_the_grouped_convolution_with_its_gradients() -> None:
    torch.manual_seed(0)
    head = GroupedHead(6, 8, 4, 2).double()
    x = torch.randn(3, 6, 4, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(3, 8, 1, 1, dtype=torch.float64)
    plain = torch.nn.functional.conv2d(x, head.weight, head.bias, groups=2)
    for ours, theirs in zip(
        torch.autograd.grad((head(x) * weights).sum(), [x, *head.parameters()]),
        torch.autograd.grad((plain * weights).sum(), [x, *head.parameters()]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(head(x), plain)
