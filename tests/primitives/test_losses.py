from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.primitives.losses import kl_margin_loss, length_margin_loss


@pytest.mark.parametrize(
    ("length", "target", "loss"),
    [
        (0.5, 1, 0.16),  # (0.9 - 0.5)^2
        (0.95, 1, 0.0),  # long enough
        (0.5, 0, 0.08),  # 0.5 (0.5 - 0.1)^2
        (0.05, 0, 0.0),  # short enough
        (0.0, 1, 0.81),
    ],
)
def test_length_margin_loss_is_squared_as_worked_by_hand(length: float, target: int, loss: float) -> None:
    out = length_margin_loss(torch.tensor([[length]]), torch.tensor([[target]]))
    torch.testing.assert_close(out, torch.tensor([loss]))


def test_length_margin_loss_uses_its_margins_and_weight() -> None:
    # 1 * (0.8 - 0.3)^2 + 0.25 * (0.6 - 0.2)^2
    out = length_margin_loss(
        torch.tensor([[0.3, 0.6]]), torch.tensor([[1.0, 0.0]]), upper=0.8, lower=0.2, down_weight=0.25
    )
    torch.testing.assert_close(out, torch.tensor([0.25 + 0.04]))


@pytest.mark.parametrize(
    ("kl", "target", "loss"),
    [
        (3.0, 1, 3.0),  # the divergence itself, not squared
        (3.0, 0, 3.5),  # 0.5 (10 - 3)
        (12.0, 0, 0.0),  # far enough
        (12.0, 1, 12.0),
    ],
)
def test_kl_margin_loss_is_linear_as_worked_by_hand(kl: float, target: int, loss: float) -> None:
    out = kl_margin_loss(torch.tensor([[kl]]), torch.tensor([[target]]), margin=10.0, down_weight=0.5)
    torch.testing.assert_close(out, torch.tensor([loss]))


def test_losses_sum_over_capsules_and_not_over_examples() -> None:
    x = torch.rand(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.nn.functional.one_hot(torch.arange(4), 6)
    by_capsule = [length_margin_loss(x[:, k : k + 1], target[:, k : k + 1]) for k in range(6)]
    torch.testing.assert_close(length_margin_loss(x, target), torch.stack(by_capsule).sum(0))
    by_capsule = [kl_margin_loss(x[:, k : k + 1], target[:, k : k + 1], 0.5, 0.3) for k in range(6)]
    torch.testing.assert_close(kl_margin_loss(x, target, 0.5, 0.3), torch.stack(by_capsule).sum(0))


def test_losses_do_not_care_in_which_order_the_capsules_come() -> None:
    x = torch.rand(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.nn.functional.one_hot(torch.arange(4), 6).bool()
    order = torch.tensor([3, 1, 5, 0, 4, 2])
    torch.testing.assert_close(length_margin_loss(x[:, order], target[:, order]), length_margin_loss(x, target))


def test_descending_the_losses_moves_capsules_the_right_way() -> None:
    x = torch.tensor([[0.5, 0.5]], requires_grad=True)
    target = torch.tensor([[True, False]])
    (grad,) = torch.autograd.grad(length_margin_loss(x, target).sum(), x)
    assert grad[0, 0] < 0 < grad[0, 1]  # the present one grows, the absent one shrinks
    (grad,) = torch.autograd.grad(kl_margin_loss(x, target, 20.0, 0.5).sum(), x)
    assert grad[0, 1] < 0 < grad[0, 0]  # the present one comes to the prior, the absent one leaves it


def test_gradients_agree_with_finite_differences() -> None:
    x = torch.tensor([[0.3, 0.5, 0.95, 0.02]], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[1.0, 0.0, 1.0, 0.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda v: length_margin_loss(v, target), x)
    assert torch.autograd.gradcheck(lambda v: kl_margin_loss(v, target, 0.4, 0.5), x)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 4), st.integers(1, 6))
def test_one_value_per_example(batch: int, capsules: int) -> None:
    x = torch.rand(batch, capsules)
    assert length_margin_loss(x, x).shape == kl_margin_loss(x, x, 1.0, 0.5).shape == (batch,)
