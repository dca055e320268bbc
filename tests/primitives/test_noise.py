"""Laws of a step's random numbers: they belong to the global batch, not to the process that draws them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.errors import GencapsError
from gencaps.primitives.noise import Noise, mix_seed


@settings(max_examples=20, deadline=None)
@given(
    world=st.integers(1, 5),
    local=st.integers(1, 7),
    shape=st.lists(st.integers(1, 4), max_size=3),
    seed=st.integers(0, 2**63 - 1),
)
def test_slices_of_the_ranks_are_the_numbers_of_one_process(
    world: int, local: int, shape: list[int], seed: int
) -> None:
    single = Noise(seed)
    ranks = [Noise(seed, rank=rank, world=world) for rank in range(world)]
    for kind in ("normal", "uniform", "normal"):  # the third call sees a generator that has moved on
        whole = getattr(single, kind)(world * local, *shape)
        slices = [getattr(noise, kind)(local, *shape) for noise in ranks]
        assert all(part.shape == (local, *shape) for part in slices)
        assert torch.equal(torch.cat(slices), whole)


def test_same_seed_same_numbers_and_other_seed_other_numbers() -> None:
    assert torch.equal(Noise(5).normal(4, 3), Noise(5).normal(4, 3))
    assert not torch.equal(Noise(5).normal(4, 3), Noise(6).normal(4, 3))


def test_a_second_draw_gives_other_numbers() -> None:
    noise = Noise(5)
    assert not torch.equal(noise.normal(4, 3), noise.normal(4, 3))
    assert not torch.equal(noise.uniform(4, 3), noise.uniform(4, 3))


def test_torch_own_generator_is_neither_used_nor_moved() -> None:
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = Noise(5).normal(4)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(Noise(5).normal(4), first)


def test_normal_numbers_have_mean_0_variance_1_and_light_tails() -> None:
    """Bounds are five standard errors of n = 100,000 draws."""
    x = Noise(0).normal(1000, 100).double()
    root_n = 100_000**0.5
    assert abs(x.mean()) < 5 * 1 / root_n
    assert abs(x.var() - 1) < 5 * 2**0.5 / root_n  # var(x^2) = 3 - 1
    assert abs(x.pow(3).mean()) < 5 * 15**0.5 / root_n  # var(x^3) = 15
    assert abs(x.pow(4).mean() - 3) < 5 * 96**0.5 / root_n  # var(x^4) = 105 - 9


def test_uniform_numbers_fill_0_to_1_evenly() -> None:
    """Mean 1/2, variance 1/12 (var(x) = 1/12, var((x - 1/2)^2) = 1/80 - 1/144 = 1/180), 1 left out."""
    x = Noise(0).uniform(1000, 100).double()
    root_n = 100_000**0.5
    assert abs(x.mean() - 1 / 2) < 5 * (1 / 12) ** 0.5 / root_n
    assert abs((x - 1 / 2).square().mean() - 1 / 12) < 5 * (1 / 180) ** 0.5 / root_n
    assert 0 <= x.min() < 0.001
    assert 0.999 < x.max() < 1


def test_rows_of_a_draw_are_independent() -> None:
    """The correlation of two rows of n = 10,000 numbers is 0 within five standard errors, 1 / sqrt(n) each."""
    first, second = Noise(3).normal(2, 10_000).double()
    assert abs((first * second).mean()) < 5 / 100


def test_mixed_seed_is_the_same_for_ever() -> None:
    # printf '0/weights' | b2sum -l 64 gives 76e392d5d9c410cd; 0xcd10c4d9d592e376 // 2
    assert mix_seed(0, "weights") == 7388263408636359099


def test_every_part_changes_the_mixed_seed() -> None:
    """So does the order of the parts, and where one ends: (1, 12) is not (11, 2)."""
    parts = [(0, 1, 2), (1, 1, 2), (0, 2, 2), (0, 1, 3), (1, 0, 2), (0, 1, "samples"), (0, 1), (1, 12), (11, 2), ()]
    assert len({mix_seed(*given) for given in parts}) == len(parts)


def test_mixed_seeds_of_many_steps_never_meet_and_use_all_63_bits() -> None:
    seeds = torch.tensor([mix_seed(0, "step", i) for i in range(4096)])
    assert len(seeds.unique()) == 4096
    assert (seeds >= 0).all()
    bits = (seeds[:, None] >> torch.arange(63)) & 1
    # each bit is on in half the seeds: 2048 within five standard errors of sqrt(4096) / 2 = 32
    assert (bits.sum(0) - 2048).abs().max() < 5 * 32


@pytest.mark.parametrize("seed", [-1, 2**63, 2**80])
def test_a_seed_out_of_range_is_refused_on_one_line(seed: int) -> None:
    with pytest.raises(GencapsError, match=rf"^seed is {seed}; it must be a whole number from 0 to \d+$"):
        Noise(seed)
