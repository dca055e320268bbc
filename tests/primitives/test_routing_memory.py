"""What routing must not keep or create: the traps of memory."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gencaps.primitives.routing import Agreement, Gradient, Over, route
from gencaps.primitives.routing_reference import route_reference

BATCH, CAPS_IN, CAPS_OUT, DIM_OUT = 64, 12, 5, 6
VOTES = BATCH * CAPS_IN * CAPS_OUT * DIM_OUT


def _inputs(dim_in: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(BATCH, CAPS_IN, dim_in, generator=generator)
    weight = torch.randn(CAPS_OUT, CAPS_IN, DIM_OUT, dim_in, generator=generator)
    return u.requires_grad_(), weight.requires_grad_()


class _Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation gives."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return out


def _largest(router, dim_in: int, **way) -> int:
    u, weight = _inputs(dim_in)
    with _Largest() as largest:
        router(u, weight, 3, **way).sum().backward()
    return largest.elements


def _kept_bytes(router, iterations: int, **way) -> int:
    """Counts the bytes of all tensors that autograd keeps until the backward pass, each storage once."""
    storages: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    u, weight = _inputs()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        v = router(u, weight, iterations, **way)
    v.sum().backward()
    return sum(storages.values())


@pytest.mark.parametrize("agreement", get_args(Agreement))
@pytest.mark.parametrize("over", get_args(Over))
@pytest.mark.parametrize("gradient", get_args(Gradient))
@pytest.mark.parametrize("dim_in", [1, DIM_OUT, 2 * DIM_OUT])
def test_the_votes_are_never_written_down(agreement: Agreement, over: Over, gradient: Gradient, dim_in: int) -> None:
    largest = _largest(route, dim_in, agreement=agreement, over=over, gradient=gradient)
    assert 0 < largest <= VOTES / 2


def test_the_watch_sees_votes_where_they_are_written_down() -> None:
    assert _largest(lambda *args, **way: route_reference(*args, **way).v, 3) >= VOTES


@pytest.mark.parametrize("agreement", get_args(Agreement))
@pytest.mark.parametrize("over", get_args(Over))
def test_kept_memory_does_not_grow_with_rounds(agreement: Agreement, over: Over) -> None:
    kept = [_kept_bytes(route, rounds, agreement=agreement, over=over) for rounds in (1, 3, 9)]
    assert kept[0] == kept[1] == kept[2]
    # the coefficients and copies of u and W, and little beside (outputs are caps_out * dim_out per example)
    u, weight = _inputs()
    needed = 4 * (BATCH * CAPS_IN * CAPS_OUT + u.numel() + weight.numel())
    outputs = 4 * BATCH * CAPS_OUT * DIM_OUT
    assert kept[0] <= needed + 8 * outputs


def test_the_count_of_kept_memory_sees_it_grow_where_gradients_run_through_all_rounds() -> None:
    assert _kept_bytes(route, 9, gradient="all") > 2 * _kept_bytes(route, 3, gradient="all")


def test_gradients_through_all_rounds_keep_no_votes_either() -> None:
    usual = _kept_bytes(lambda *args, **way: route_reference(*args, **way).v, 3, gradient="all")
    assert _kept_bytes(route, 3, gradient="all") <= usual - 4 * VOTES
