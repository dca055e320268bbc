"""Laws of the adversary of Eq. (5) (Huang et al., 2018)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gencaps.papers.variational.discriminator import Look, MultiScaleDiscriminator, least_squares


def make(size: int, scales: int = 2, channels: int = 1) -> MultiScaleDiscriminator:
    torch.manual_seed(0)
    return MultiScaleDiscriminator(channels, size, 4, scales)


def test_least_squares_by_hand_over_two_scales() -> None:
    """Verdicts 0, 1 and 3 at one scale, 2 at the other; every scale counts the same, however many places it has.

    Wanted 1: ((1 + 0 + 4) / 3 + 1) / 2 = 4/3. Wanted 0: ((0 + 1 + 9) / 3 + 4) / 2 = 11/3.
    A second picture that is 1 everywhere: 0 and 1.
    """
    verdicts = [torch.tensor([[0.0, 1.0, 3.0], [1.0, 1.0, 1.0]]), torch.tensor([[2.0], [1.0]])]
    assert least_squares(verdicts, 1.0).tolist() == pytest.approx([4 / 3, 0])
    assert least_squares(verdicts, 0.0).tolist() == pytest.approx([11 / 3, 1])


@pytest.mark.parametrize(
    ("size", "scales", "places"),
    [
        (8, 1, [16]),
        (8, 2, [16]),  # half of 8 is too small to look at
        (8, 3, [16]),
        (16, 2, [16, 16]),
        (16, 3, [16, 16]),
        (32, 1, [16]),
        (32, 2, [16, 16]),
        (32, 3, [16, 16, 16]),
        (64, 2, [64, 16]),
        (64, 4, [64, 16, 16, 16]),
        (4, 2, [16]),
    ],
)
def test_verdict_maps_at_every_size(size: int, scales: int, places: list[int]) -> None:
    """At most three halvings, down to 4 px at the least."""
    verdicts = make(size, scales, 3)(torch.rand(2, 3, size, size))
    assert [verdict.shape for verdict in verdicts] == [(2, n) for n in places]


def test_pictures_of_28_px_are_looked_at_twice() -> None:
    assert [v.shape[0] for v in make(28)(torch.rand(3, 1, 28, 28))] == [3, 3]


def test_second_scale_sees_the_halved_picture() -> None:
    """The second look of a picture is that of its averages of 2 x 2, and each scale has weights of its own."""
    model, x = make(16), torch.rand(2, 1, 16, 16)
    first, second = model(x)
    torch.testing.assert_close(second, model.looks[1](2 * F.avg_pool2d(x, 2) - 1).flatten(1))
    torch.testing.assert_close(first, model.looks[0](2 * x - 1).flatten(1))
    checks = (torch.arange(16)[:, None] + torch.arange(16)) % 2  # a chessboard is plain grey at half the size
    board, grey = checks.float()[None, None], torch.full((1, 1, 16, 16), 0.5)
    torch.testing.assert_close(model(board)[1], model(grey)[1])
    assert (model(board)[0] - model(grey)[0]).abs().max() > 1e-3


def raised(model: MultiScaleDiscriminator, by: float) -> None:
    """Adds a number to every verdict."""
    with torch.no_grad():
        for look in model.looks:
            assert isinstance(look, Look)
            last = look.verdict
            assert isinstance(last, nn.Conv2d)
            assert last.bias is not None
            last.bias += by


def test_verdicts_follow_their_bias() -> None:
    """What the tests of signs below rest on."""
    model, x = make(16), torch.rand(2, 1, 16, 16)
    before = model(x)
    raised(model, 0.25)
    for a, b in zip(before, model(x), strict=True):
        torch.testing.assert_close(b, a + 0.25)


@pytest.mark.parametrize(("wanted", "sign"), [(1.0, -1), (0.0, 1)])
def test_loss_falls_as_verdicts_approach_what_is_wanted(wanted: float, sign: int) -> None:
    """Between 0 and 1 the loss of real pictures falls with the verdict, that of fakes grows."""
    verdict = torch.full((1, 4), 0.5, requires_grad=True)
    least_squares([verdict], wanted).sum().backward()
    assert verdict.grad is not None
    # d/dv mean (v - w)^2 = 2 (v - w) / 4
    assert verdict.grad[0].tolist() == pytest.approx([sign * 0.25] * 4)
    exact: Tensor = least_squares([torch.full((1, 4), wanted)], wanted)
    assert exact.item() == 0
