from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.data.images import ImageSet, Labels, Splits, counts
from gencaps.data.splits import cut, generator_of, held_out, permutation, split_record
from gencaps.errors import GencapsError


def numbered(y: torch.Tensor, labels: Labels = "classes") -> ImageSet:
    """Makes a set whose picture i is the number i, in two bytes."""
    n = len(y)
    x = torch.stack([torch.arange(n) // 256, torch.arange(n) % 256], 1).to(torch.uint8).view(n, 1, 1, 2)
    width = y.shape[1] if y.ndim == 2 else int(y.max()) + 1
    return ImageSet("toy", x, y, tuple(f"c{k}" for k in range(width)), labels)


def numbers(set: ImageSet) -> list[int]:
    return (set.x[:, 0, 0, 0].long() * 256 + set.x[:, 0, 0, 1].long()).tolist()


@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=6),
    share=st.floats(0.05, 0.5),
    seed=st.integers(-5, 99),
)
@settings(deadline=None)
def test_parts_are_disjoint_complete_and_stratified(sizes: list[int], share: float, seed: int) -> None:
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    y = y[permutation(len(y), 3)]
    kept, held = cut(numbered(y), share, seed)
    assert sorted(numbers(kept) + numbers(held)) == list(range(len(y)))
    assert numbers(kept) == sorted(numbers(kept))  # in the order of the original
    for size, of_held in zip(sizes, torch.bincount(held.y, minlength=len(sizes)).tolist(), strict=True):
        assert abs(of_held - share * size) <= 1
        assert of_held < size  # every class stays in training
        assert of_held >= 1 or size == 1


def test_the_held_out_share_is_exact_where_classes_are_large() -> None:
    y = torch.arange(60_000) % 7  # 7 does not divide 60,000, so rounding class by class would miss
    assert int(held_out(y, 0.1, 0).sum()) == 6_000


def test_a_cut_is_fixed_by_its_seeds() -> None:
    y = torch.arange(300) % 3
    assert torch.equal(held_out(y, 0.2, 1), held_out(y, 0.2, 1))
    assert not torch.equal(held_out(y, 0.2, 1), held_out(y, 0.2, 2))
    assert not torch.equal(held_out(y, 0.2, 1), held_out(y, 0.2, 1, 1))


def test_a_cut_does_not_touch_the_global_generator() -> None:
    state = torch.random.get_rng_state()
    cut(numbered(torch.arange(30) % 3), 0.2, 0)
    assert torch.equal(state, torch.random.get_rng_state())


def test_seeds_and_their_order_give_different_streams() -> None:
    seeds = [(0,), (0, 0), (1,), (-1,), (1, 2), (2, 1), (0, 1), (2**40,)]
    draws = {tuple(torch.rand(3, generator=generator_of(*s)).tolist()) for s in seeds}
    assert len(draws) == len(seeds)


def test_attributes_are_cut_as_one_group() -> None:
    y = (torch.rand(50, 4, generator=generator_of(1)) < 0.5).to(torch.uint8)
    kept, held = cut(numbered(y, "attributes"), 0.2, 0)
    assert (len(kept), len(held)) == (40, 10)
    assert torch.equal(y[numbers(held)], held.y)


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(GencapsError, match=str(share)):
        cut(numbered(torch.arange(6) % 2), share, 0)


def test_nothing_is_held_out_at_zero() -> None:
    whole = numbered(torch.arange(6) % 2)
    kept, held = cut(whole, 0.0, 0)
    assert (len(kept), len(held)) == (6, 0)
    assert held.x.shape == (0, 1, 1, 2)


def test_counts_are_by_name() -> None:
    assert counts(numbered(torch.tensor([0, 2, 2, 1]))) == {"c0": 1, "c1": 1, "c2": 2}
    y = torch.tensor([[1, 0], [1, 1]], dtype=torch.uint8)
    assert counts(numbered(y, "attributes")) == {"c0": 2, "c1": 1}


def test_the_record_changes_with_labels_pixels_and_order() -> None:
    whole = numbered(torch.arange(20) % 2)

    def record(set: ImageSet) -> dict[str, Any]:
        return split_record(Splits(set, set[:0], set[:5]))

    base = record(whole)
    assert record(numbered(torch.arange(20) % 2)) == base
    assert base["train"]["pictures"] == 20
    assert base["valid"]["pictures"] == 0
    other_labels = numbered((torch.arange(20) + 1) % 2)
    flipped = whole[torch.arange(19, -1, -1)]
    brighter = ImageSet(whole.name, whole.x + 1, whole.y, whole.names)
    for other in (other_labels, flipped, brighter):
        assert record(other)["train"]["sha256"] != base["train"]["sha256"]
