"""The rotation sweep, with readers whose accuracy is known."""

from __future__ import annotations

import torch
from torch import Tensor

from gencaps.data.images import ImageSet
from gencaps.data.transforms import rotated
from gencaps.metrics.rotation import rotation_sweep
from tests.helpers import refused


def bars(n: int) -> tuple[Tensor, Tensor]:
    """Bytes: a bar to the right of the centre (class 0) or below it (class 1)."""
    x = torch.zeros(n, 1, 17, 17, dtype=torch.uint8)
    y = torch.arange(n) % 2
    x[y == 0, :, 7:10, 11:] = 200
    x[y == 1, :, 11:, 7:10] = 200
    return x, y


def read_bars(x: Tensor) -> Tensor:
    """Tells where more light is: right of the centre or below it."""
    return (x[:, 0, 11:, 7:10].float().sum((1, 2)) > x[:, 0, 7:10, 11:].float().sum((1, 2))).long()


def test_without_a_turn_the_very_pictures_are_read() -> None:
    x, y = bars(10)
    seen: list[Tensor] = []

    def read(part: Tensor) -> Tensor:
        seen.append(part)
        return torch.zeros(len(part), dtype=torch.int64)

    assert rotation_sweep(read, x, y, angles=(0,), batch=4) == {0.0: 0.5}
    assert [len(part) for part in seen] == [4, 4, 2]
    assert torch.equal(torch.cat(seen), x)
    # the same memory: resampling by no turn at all may round
    assert seen[0].data_ptr() == x.data_ptr()


def test_accuracy_falls_with_the_angle() -> None:
    x, y = bars(200)
    told = rotation_sweep(read_bars, x, y)
    assert list(told) == [0, 45, 90, 135, 180]
    assert told[0] == 1.0
    assert told[0] >= told[45] > told[90] > told[135]
    # up to 90 degrees the right bar is lost beyond -45 or so, the lower one beyond +45
    assert 0.55 < told[90] < 0.9


def test_the_turns_are_those_of_a_rotated_set() -> None:
    x, y = bars(60)
    whole = ImageSet(name="bars", x=x, y=y, names=("right", "below"))
    for seed in (0, 3):
        turned = rotated(whole, 90.0, seed)
        expected = (read_bars(turned.x) == y).double().mean().item()
        assert rotation_sweep(read_bars, x, y, (90,), seed) == {90.0: expected}


def test_the_batch_changes_nothing_and_the_seed_fixes_everything() -> None:
    x, y = bars(60)
    assert rotation_sweep(read_bars, x, y, (30, 90), 1, batch=7) == rotation_sweep(read_bars, x, y, (30, 90), 1)
    degrees = [rotation_sweep(read_bars, x, y, (100,), seed)[100.0] for seed in range(4)]
    assert len(set(degrees)) > 1


def test_one_picture_turns_in_proportion_to_theta() -> None:
    """The same uniform number serves every theta: at twice theta each picture has turned twice as far."""
    x = torch.zeros(20, 1, 33, 33)
    x[:, :, 16, 28] = 1.0
    angles: list[Tensor] = []

    def read(part: Tensor) -> Tensor:
        span = torch.arange(33.0) - 16
        across, down = (part[:, 0].sum(1) * span).sum(1), (part[:, 0].sum(2) * span).sum(1)
        angles.append(torch.rad2deg(torch.atan2(-down, across)))
        return torch.zeros(len(part), dtype=torch.int64)

    rotation_sweep(read, x, torch.zeros(20, dtype=torch.int64), (40, 80))
    assert angles[0].abs().max() < 41
    assert angles[1].abs().max() > 41
    assert (angles[1] - 2 * angles[0]).abs().max() < 4


def test_sweep_refuses_what_it_cannot_turn_or_read() -> None:
    x, y = bars(4)
    refused(lambda: rotation_sweep(read_bars, x[:0], y[:0]), "0 samples")
    refused(lambda: rotation_sweep(read_bars, x * float("nan"), y), "pixels", "not finite")
    refused(lambda: rotation_sweep(read_bars, x, y, (0, -45)), "-45 degrees")
    refused(lambda: rotation_sweep(read_bars, x, y, (float("nan"),)), "nan degrees")
    refused(lambda: rotation_sweep(read_bars, x, y, batch=0), "0 at a time")
    refused(lambda: rotation_sweep(lambda part: part.sum(), x, y), "shape ()", "4 pictures")
