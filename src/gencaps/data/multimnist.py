"""MultiMNIST (Sabour et al., 2017): two digits of different classes on top of each other, made on the fly."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from gencaps.data.images import ImageSet, Splits
from gencaps.data.splits import generator_of
from gencaps.data.transforms import place_on_canvas

SIZE = 36
"""Side of the canvas: each digit of 28 px is moved by up to 4 px from its middle."""
ALONE = 1 / 3
"""Share of the training pictures that show one digit alone, so that a decoder learns to paint one alone."""
TRAIN_SEEDS, TEST_SEED = (0, 2, 3, 4, 5), 1
"""A training digit is paired once for each seed: with one pair each, a network learns the pairs by heart."""


def partners(y: Int[Tensor, "n"], generator: torch.Generator) -> Int[Tensor, "n"]:
    """Chooses for each digit another one of a different class."""
    n = len(y)
    chosen = torch.randint(n, (n,), generator=generator)
    while bool((same := y[chosen] == y).any()):
        chosen[same] = torch.randint(n, (int(same.sum()),), generator=generator)
    return chosen


def overlay(set: ImageSet, seed: int, alone: float = 0.0) -> ImageSet:
    """Lays a digit of another class over each digit, both moved; the labels say which two classes are there.

    Args:
        set: MNIST's pictures, a class each.
        seed: fixes the pairs and the places.
        alone: the share of pictures that keep one digit.
    """
    generator = generator_of(seed)
    other = partners(set.y, generator)
    places = torch.rand(2, len(set), 2, generator=generator)
    single = torch.rand(len(set), generator=generator) < alone
    first, second = (place_on_canvas(x, u, SIZE) for x, u in zip((set.x, set.x[other]), places, strict=True))
    x: UInt8[Tensor, "n 1 36 36"] = torch.where(single[:, None, None, None], first, torch.maximum(first, second))
    y = torch.zeros(len(set), len(set.names), dtype=torch.uint8)
    y.scatter_(1, set.y[:, None], 1)
    y[~single] = y[~single].scatter(1, set.y[other][~single][:, None], 1)
    note = f"two digits of MNIST on top of each other, seed {seed}"
    return ImageSet("multimnist", x, y, set.names, "attributes", (note,))


def make(plain: Splits) -> Splits:
    """Makes the set: pairs and single digits to train on, pairs alone to test."""
    paired = [overlay(plain.train, seed, ALONE) for seed in TRAIN_SEEDS]
    x, y = torch.cat([each.x for each in paired]), torch.cat([each.y for each in paired])
    note = f"two digits of MNIST on top of each other, each leading {len(paired)} pictures"
    train = replace(paired[0], x=x, y=y, notes=(note,))
    return Splits(train, train[:0], overlay(plain.test, TEST_SEED))
