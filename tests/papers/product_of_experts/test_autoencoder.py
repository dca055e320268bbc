"""The tied autoencoder of section 4.1 (Hauser, 2020)."""

from __future__ import annotations

import pytest
import torch

from gencaps.papers.product_of_experts.autoencoder import TiedAutoencoder
from tests.helpers import refused


def autoencoder(
    size: int = 28, channels: int = 1, filters: int = 16, kernel: int = 9, stride: int = 2
) -> TiedAutoencoder:
    """Builds one without dropout."""
    torch.manual_seed(0)
    return TiedAutoencoder(channels, size, (filters, filters), kernel, stride, 0.2, 0.0, 8)


def test_the_paper_cuts_28_pixels_into_576_capsules() -> None:
    assert autoencoder(filters=128).capsules == 576  # 6 x 6 x 128 / 8
    assert autoencoder(filters=128).side == 6


@pytest.mark.parametrize(
    ("size", "channels", "kernel", "stride"), [(28, 1, 9, 2), (32, 3, 9, 2), (8, 1, 3, 1), (9, 1, 3, 2)]
)
def test_what_is_painted_has_the_size_of_what_came_in(size: int, channels: int, kernel: int, stride: int) -> None:
    made = autoencoder(size, channels, 16, kernel, stride)
    x = torch.rand(2, channels, size, size)
    code = made.code(x)
    assert made.cut(code).shape == (2, made.capsules, 8)
    assert made.logits(code).shape == x.shape


def test_a_capsule_holds_numbers_of_one_position_and_joining_undoes_cutting() -> None:
    made = autoencoder()
    code = torch.zeros(1, 16, 6, 6)
    code[0, 8:, 2, 3] = torch.arange(1.0, 9.0)  # the second kind of capsule, at row 2, column 3
    capsules = made.cut(code)
    assert capsules.abs().sum(-1).count_nonzero() == 1
    assert torch.equal(capsules[0, 36 + 2 * 6 + 3], torch.arange(1.0, 9.0))
    assert torch.equal(made.join(capsules), code)


def test_painting_is_the_transpose_of_coding() -> None:
    # <conv x, y> = <x, conv^T y> for each bank, without biases: the filters are the same
    made = autoencoder().double()
    made.slope = 1.0
    x, y = torch.rand(1, 1, 28, 28, dtype=torch.float64), torch.rand(1, 16, 6, 6, dtype=torch.float64)
    torch.testing.assert_close((made.code(x) * y).sum(), (x * made.logits(y)).sum())


def test_dropout_is_for_training_alone() -> None:
    made = autoencoder()
    made.dropout = 0.5
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(made.code(x), made.code(x))
    assert (made.code(x, dropping=True) == 0).float().mean() > 0.3


def test_filters_too_large_for_the_pictures_are_refused() -> None:
    refused(lambda: autoencoder(8), "model.kernel is 9", "8 px", "at most 4")
