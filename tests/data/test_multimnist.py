"""MultiMNIST: two different digits on top of each other, both whole."""

from __future__ import annotations

import torch

from gencaps.data.images import ImageSet, Splits
from gencaps.data.multimnist import ALONE, SIZE, TRAIN_SEEDS, make, overlay, partners
from gencaps.data.splits import generator_of

NAMES = tuple("0123456789")


def digits(n: int) -> ImageSet:
    """Stand-ins for digits: class k is a dot of brightness 20 k + 20 in the middle of 28 px."""
    y = torch.arange(n) % 10
    x = torch.zeros(n, 1, 28, 28, dtype=torch.uint8)
    x[:, 0, 14, 14] = (20 * y + 20).to(torch.uint8)
    return ImageSet("mnist", x, y, NAMES)


def test_partners_are_of_another_class() -> None:
    y = torch.tensor([0] * 9 + [1])
    assert (y[partners(y, generator_of(0))] != y).all()


def test_a_picture_shows_both_digits_that_its_labels_name() -> None:
    made = overlay(digits(200), 3)
    assert made.x.shape == (200, 1, SIZE, SIZE)
    assert made.labels == "attributes"
    for picture, label in zip(made.x, made.y, strict=True):
        named = {20 * k + 20 for k in label.nonzero()[:, 0].tolist()}
        shown = set(picture.unique().tolist()) - {0}
        assert len(named) == 2
        assert max(named) in shown  # where both dots fall on one place, the brighter is seen
        assert shown <= named


def test_digits_move_by_up_to_four_pixels_either_way() -> None:
    made = overlay(digits(600), 0, alone=0.999)
    single = made.y.sum(1) == 1
    rows = made.x[single, 0].amax(2).argmax(1)
    # the dot at 14 of 28 px is at 18 of 36 px in the middle
    assert (rows.min().item(), rows.max().item()) == (14, 22)


def test_the_set_is_fixed_and_tests_on_pairs_alone() -> None:
    plain = Splits(digits(900), digits(900)[:0], digits(300))
    one, again = make(plain), make(plain)
    assert all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y) for a, b in zip(one, again, strict=True))
    assert (one.test.y.sum(1) == 2).all()
    alone = (one.train.y.sum(1) == 1).double().mean().item()
    assert abs(alone - ALONE) < 0.06
    assert not torch.equal(one.train.x[:300], one.test.x)
    # each training digit again and again, in another pair each time
    assert len(one.train) == 900 * len(TRAIN_SEEDS)
    assert not torch.equal(one.train.x[:900], one.train.x[900:1800])
