from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.errors import GencapsError
from gencaps.primitives.layers import DenseCapsules, PrimaryCapsules
from gencaps.primitives.routing import Agreement, Over
from gencaps.primitives.routing_reference import route_reference
from gencaps.primitives.squash import direction, length, squash


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2),
    st.tuples(*[st.integers(1, 3)] * 5),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_primary_capsules_take_any_size_and_channels(
    batch: int, sizes: tuple[int, int, int, int, int], spare: tuple[int, int]
) -> None:
    channels, capsules, dim, kernel, stride = sizes
    height, width = kernel + spare[0], kernel + spare[1]
    layer = PrimaryCapsules(channels, capsules, dim, kernel, stride)
    v = layer(torch.randn(batch, channels, height, width))
    assert v.shape == (batch, layer.count(height, width), dim)


def test_primary_capsules_of_the_papers_size_count_1152() -> None:
    # (Sabour et al., 2017), Sec. 4: 20 x 20 x 256, kernel 9, stride 2 -> 32 x 6 x 6 capsules of 8
    assert PrimaryCapsules(4, 32, 8, 9, 2).count(20, 20) == 1152


def test_padding_is_zeros_around_the_picture() -> None:
    layer, plain = PrimaryCapsules(2, 3, 4, 4, 2, 1), PrimaryCapsules(2, 3, 4, 4, 2)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(2, 2, 14, 14)
    assert layer.count(14, 14) == plain.count(16, 16) == 3 * 7 * 7
    torch.testing.assert_close(layer(x), plain(torch.nn.functional.pad(x, (1, 1, 1, 1))))


def test_the_numbers_of_a_capsule_come_from_one_position() -> None:
    # a 1 x 1 kernel keeps positions apart: a change at one position may reach its capsules and no other.
    # A reshape without the permute would spread each capsule over dim positions.
    layer = PrimaryCapsules(2, 3, 4, 1, 1)
    x = torch.randn(1, 2, 5, 5, generator=torch.Generator().manual_seed(0))
    changed = x.clone()
    changed[0, :, 2, 3] += 1
    moved = (layer(x) != layer(changed)).any(-1)[0].view(3, 5, 5)
    expected = torch.zeros(3, 5, 5, dtype=torch.bool)
    expected[:, 2, 3] = True
    assert (moved == expected).all()


def test_a_primary_capsule_is_its_own_squashed_channels() -> None:
    layer = PrimaryCapsules(2, 3, 4, 2, 1)
    x = torch.randn(2, 2, 4, 5, generator=torch.Generator().manual_seed(0))
    channels, v = layer.conv(x), layer(x).view(2, 3, 3, 4, 4)
    torch.testing.assert_close(v[1, 2, 0, 3], squash(channels[1, 8:12, 0, 3]))


def test_a_picture_smaller_than_the_kernel_is_refused_in_one_line() -> None:
    with pytest.raises(GencapsError, match=r"4 x 9 is smaller than the kernel of 5; give a larger picture"):
        PrimaryCapsules(1, 2, 4, 5, 2)(torch.zeros(1, 1, 4, 9))


@pytest.mark.parametrize("agreement", get_args(Agreement))
@pytest.mark.parametrize("over", get_args(Over))
def test_dense_capsules_route_by_their_own_weights(agreement: Agreement, over: Over) -> None:
    layer = DenseCapsules(6, 4, 3, 5, iterations=2, agreement=agreement, over=over, gradient="all")
    u = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    expected = route_reference(u, layer.weight, 2, agreement=agreement, over=over, gradient="all").v
    torch.testing.assert_close(layer(u), expected)
    torch.testing.assert_close(
        torch.autograd.grad(layer(u).sum(), layer.weight), torch.autograd.grad(expected.sum(), layer.weight)
    )


@pytest.mark.parametrize("over", get_args(Over))
def test_dense_capsules_start_awake(over: Over) -> None:
    # before squashing, even coefficients turn inputs of length 1 into outputs of length about 1
    caps_in, caps_out, dim_out = 400, 10, 16
    layer = DenseCapsules(caps_in, 8, caps_out, dim_out, iterations=1, agreement="cosine", over=over)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    u = direction(torch.randn(20, caps_in, 8, generator=torch.Generator().manual_seed(1)))
    v = length(layer(u)).mean()
    assert 0.4 < v < 0.6  # length 1 squashed is 1 / 2


def test_dense_capsules_start_with_votes_no_longer_than_their_inputs() -> None:
    layer = DenseCapsules(4, 8, 100, 16)  # outputs of length 1 would take votes of length 50
    layer.reset_parameters(torch.Generator().manual_seed(0))
    assert math.isclose(layer.weight.std().item(), 1 / math.sqrt(16), rel_tol=0.05)


def test_starting_weights_follow_their_generator() -> None:
    layer = DenseCapsules(3, 2, 4, 2)
    layer.reset_parameters(torch.Generator().manual_seed(7))
    first = layer.weight.detach().clone()
    layer.reset_parameters(torch.Generator().manual_seed(7))
    torch.testing.assert_close(layer.weight.detach(), first, rtol=0, atol=0)


def test_a_capsule_network_learns_to_tell_two_pictures_apart() -> None:
    torch.manual_seed(0)
    primary = PrimaryCapsules(1, 2, 4, 3, 2)
    dense = DenseCapsules(primary.count(7, 9), 4, 2, 4)
    x = torch.zeros(2, 1, 7, 9)
    x[0, 0, :, 2], x[1, 0, 3, :] = 1, 1
    optimizer = torch.optim.Adam([*primary.parameters(), *dense.parameters()], lr=0.02)
    for _ in range(60):
        lengths = length(dense(primary(x)))
        loss = (lengths - torch.eye(2)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (length(dense(primary(x))) - torch.eye(2)).abs().max() < 0.25
