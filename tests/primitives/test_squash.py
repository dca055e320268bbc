from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.primitives.squash import direction, length, squash, unsquash


def _capsules(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize(
    ("z", "v"),
    [
        ([3.0, 4.0], [15 / 26, 20 / 26]),  # length 5 becomes 25 / 26, direction (0.6, 0.8)
        ([0.0, 1.0], [0.0, 0.5]),  # length 1 becomes 1 / 2
        ([-0.5, 0.0], [-0.2, 0.0]),  # length 1 / 2 becomes (1 / 4) / (5 / 4)
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_squash_gives_the_numbers_worked_by_hand(z: list[float], v: list[float]) -> None:
    torch.testing.assert_close(squash(torch.tensor(z)), torch.tensor(v))


def test_squash_keeps_direction_and_stays_below_one() -> None:
    z = _capsules(50, 7) * torch.logspace(-3, 3, 50, dtype=torch.float64)[:, None]
    v = squash(z)
    torch.testing.assert_close(direction(v), direction(z))
    assert (length(v) < 1).all()


def test_squashed_length_is_the_sigmoid_of_the_log_of_the_squared_length() -> None:
    # (Hauser, 2020), Sec. 3.1: an independent route to the same probability
    z = _capsules(4, 5, 3)
    torch.testing.assert_close(length(squash(z)), torch.sigmoid(torch.log(z.square().sum(-1))))


def test_squash_works_over_the_last_axis_only() -> None:
    # a batch of capsules is the capsules one by one: squash over any other axis mixes them
    z = _capsules(3, 4, 4)
    one_by_one = torch.stack([torch.stack([squash(capsule) for capsule in example]) for example in z])
    torch.testing.assert_close(squash(z), one_by_one)
    torch.testing.assert_close(unsquash(squash(z)), z)


@pytest.mark.parametrize("function", [squash, length, direction])
def test_gradients_agree_with_finite_differences(function) -> None:
    z = _capsules(3, 2, 4).requires_grad_()
    assert torch.autograd.gradcheck(function, z)


def test_gradient_of_unsquash_agrees_with_finite_differences() -> None:
    v = squash(_capsules(3, 2, 4)).requires_grad_()
    assert torch.autograd.gradcheck(unsquash, v)


@pytest.mark.parametrize("function", [squash, unsquash, length, direction])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [0.0, 1e-38, 1e-30, 1e-8, 0.5, 1.0, 1e8, 1e30])
def test_values_and_gradients_are_finite_at_any_length(function, dtype: torch.dtype, size: float) -> None:
    z = torch.tensor([[size, 0.0, 0.0], [size, -size, size]], dtype=dtype, requires_grad=True)
    out = function(z)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert z.grad is not None
    assert torch.isfinite(z.grad).all()


def test_squash_and_its_gradient_are_zero_at_zero() -> None:
    z = torch.zeros(2, 3, requires_grad=True)
    v = squash(z)
    v.sum().backward()
    assert (v == 0).all()
    assert z.grad is not None
    assert (z.grad == 0).all()  # squash is quadratic there


def test_squash_tends_to_the_direction_for_huge_capsules() -> None:
    z = torch.tensor([[3e25, 4e25]])  # its square is no float32
    torch.testing.assert_close(squash(z), torch.tensor([[0.6, 0.8]]))
    torch.testing.assert_close(length(z), torch.tensor([5e25]))


@pytest.mark.parametrize(("dtype", "longest", "rtol"), [(torch.float64, 1e4, 1e-6), (torch.float32, 30.0, 1e-3)])
def test_unsquash_undoes_squash(dtype: torch.dtype, longest: float, rtol: float) -> None:
    lengths = torch.logspace(-6, torch.tensor(longest).log10().item(), 200, dtype=dtype)
    z = direction(_capsules(200, 8, dtype=dtype)) * lengths[:, None]
    error = length(unsquash(squash(z)) - z) / lengths
    assert error.max() < rtol


def test_squash_undoes_unsquash() -> None:
    v = direction(_capsules(100, 5)) * torch.linspace(1e-6, 0.999, 100, dtype=torch.float64)[:, None]
    torch.testing.assert_close(squash(unsquash(v)), v)


@pytest.mark.parametrize(("v", "z"), [(0.5, 1.0), (0.8, 2.0), (0.2, 0.5)])  # sqrt(0.8 / 0.2) = 2
def test_unsquash_gives_the_numbers_worked_by_hand(v: float, z: float) -> None:
    torch.testing.assert_close(unsquash(torch.tensor([0.0, -v])), torch.tensor([0.0, -z]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unsquash_of_length_one_and_beyond_is_long_and_finite(dtype: torch.dtype) -> None:
    z = unsquash(torch.tensor([[1.0, 0.0], [0.0, 1.5], [1e10, 0.0]], dtype=dtype))
    limit = torch.finfo(dtype).eps ** -0.5  # sqrt((1 - eps) / eps)
    torch.testing.assert_close(length(z), torch.full((3,), limit, dtype=dtype), rtol=1e-4, atol=0)
    assert z[0, 1] == z[1, 0] == z[2, 1] == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 100))
def test_shapes_are_kept(shape: list[int], seed: int) -> None:
    z = _capsules(*shape, seed=seed)
    assert squash(z).shape == unsquash(squash(z)).shape == z.shape
    assert length(z).shape == z.shape[:-1]
    torch.testing.assert_close(length(z), z.square().sum(-1).sqrt())
