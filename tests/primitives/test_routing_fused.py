"""Laws of the fused kernels: they mean what the reference means. Without a GPU Triton's interpreter runs them."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gencaps.primitives import routing_backend, routing_plan
from gencaps.primitives.routing import Agreement, Gradient, Over, route
from gencaps.primitives.routing_backend import choose
from gencaps.primitives.routing_reference import route_reference
from gencaps.primitives.routing_votes_plan import Wide, fits
from gencaps.primitives.squash import squash
from tests.helpers import refused

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
triton = pytest.importorskip("triton", reason="Triton is not installed")

CHOICES: list[tuple[Agreement, Over, Gradient]] = [
    one for one in product(("dot", "cosine"), ("outputs", "inputs"), ("last", "all")) if one[::2] != ("cosine", "all")
]
RULES = ("test_schema", "test_autograd_registration", "test_faketensor")
choices = pytest.mark.parametrize(("agreement", "over", "gradient"), CHOICES)


def problem(
    batch: int, caps_in: int, caps_out: int, dim_out: int, dim_in: int, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, caps_in, dim_in, generator=generator)
    weight = torch.randn(caps_out, caps_in, dim_out, dim_in, generator=generator) * 0.3
    g = torch.randn(batch, caps_out, dim_out, generator=generator)
    return u.to(DEVICE), weight.to(DEVICE), g.to(DEVICE)


def apart(found: Tensor, wanted: Tensor) -> float:
    """Gives the distance of two tensors, relative to the length of the second."""
    return ((found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-12)).item()


def both(
    u: Tensor, weight: Tensor, g: Tensor, iterations: int, agreement: Agreement, over: Over, gradient: Gradient
) -> tuple[list[Tensor], list[Tensor]]:
    """Gives outputs and gradients of the kernels and of the reference, which has float64."""
    results = []
    for fused in (True, False):
        a, w = (x.detach().to(x.dtype if fused else torch.float64).requires_grad_() for x in (u, weight))
        how: dict[str, Any] = {"agreement": agreement, "over": over, "gradient": gradient}
        v = route(a, w, iterations, **how, backend="fused") if fused else route_reference(a, w, iterations, **how).v
        results.append([v, *torch.autograd.grad(v, (a, w), g.to(v.dtype))])
    return results[0], results[1]


def agree(found: list[Tensor], wanted: list[Tensor]) -> None:
    """Holds that all tensors agree; one that cancels to nothing has no relative error: it is set against the whole."""
    whole = max(x.norm().item() for x in wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.double() - theirs).norm().item() < 1e-5 * max(theirs.norm().item(), 1e-2 * whole)


@choices
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_kernels_equal_the_reference(agreement: Agreement, over: Over, gradient: Gradient, iterations: int) -> None:
    found, wanted = both(*problem(5, 9, 3, 4, 3), iterations, agreement, over, gradient)
    assert max(map(apart, found, wanted)) < 1e-5


@choices
def test_sizes_beyond_one_tile(agreement: Agreement, over: Over, gradient: Gradient) -> None:
    """Several blocks of pictures and several chunks of input capsules, none of them full."""
    found, wanted = both(*problem(70, 45, 2, 5, 8), 3, agreement, over, gradient)
    assert max(map(apart, found, wanted)) < 1e-5


@choices
@pytest.mark.parametrize("caps_out", [1, 3])
def test_several_tiles_in_a_chunk_and_outputs_without_a_pair(
    agreement: Agreement, over: Over, gradient: Gradient, caps_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gencaps.primitives import routing_rounds

    for name in ("SUMS", "LOGITS"):
        monkeypatch.setattr(routing_rounds, name, getattr(routing_rounds, name)._replace(programs=2 * caps_out))
    u, weight, g = problem(20, 70, caps_out, 5, 8)
    assert routing_plan.Plan.of(u, weight, routing_rounds.SUMS).tiles > 1
    found, wanted = both(u, weight, g, 3, agreement, over, gradient)
    assert max(map(apart, found, wanted)) < 1e-5


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.tuples(*(st.integers(1, most) for most in (20, 40, 5, 18, 9))),
    choice=st.sampled_from(CHOICES),
    iterations=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_any_sizes(
    sizes: tuple[int, int, int, int, int], choice: tuple[Agreement, Over, Gradient], iterations: int, seed: int
) -> None:
    agree(*both(*problem(*sizes, seed), iterations, *choice))


@settings(max_examples=10, deadline=None)
@given(
    sizes=st.tuples(*(st.integers(1, most) for most in (36, 8, 17, 33, 17))),
    over=st.sampled_from(get_args(Over)),
    iterations=st.integers(1, 3),
    programs=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_all_output_capsules_at_once_at_any_sizes(
    sizes: tuple[int, int, int, int, int], over: Over, iterations: int, programs: int, seed: int
) -> None:
    """Few and many chunks of input capsules, blocks of pictures and of output capsules, the last ones not full."""
    from gencaps.primitives import routing_rounds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routing_rounds, "EVEN", Wide(16, 16, 32, programs, 4, 2))
        patch.setattr(routing_rounds, "VOTES", routing_rounds.VOTES._replace(pictures=16, programs=programs))
        agree(*both(*problem(*sizes, seed), iterations, "dot", over, "last"))


@pytest.mark.parametrize(
    ("caps_out", "dim_out", "fit"),
    [(10, 16, True), (11, 5, True), (16, 9, True), (17, 1, False), (8, 32, True), (9, 17, False)],
)
def test_votes_that_fit_into_registers_are_held_and_no_logits_kept(
    caps_out: int, dim_out: int, fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways agree with the reference; two blocks of pictures and two chunks, the last ones not full."""
    from gencaps.primitives import routing_rounds

    monkeypatch.setattr(routing_rounds, "VOTES", routing_rounds.VOTES._replace(pictures=16, programs=4))
    u, weight, g = problem(20, 7, caps_out, dim_out, 2)
    assert fits(weight) == fit
    for quick in {fit, False}:
        kept = []
        monkeypatch.setattr(routing_rounds, "fits", lambda _, quick=quick: quick)
        with torch.autograd.graph.saved_tensors_hooks(lambda x, kept=kept: kept.append(x) or x, lambda x: x):
            agree(*both(u, weight, g, 3, "dot", "outputs", "last"))
        shapes = [tuple(x.shape) for x in kept if x.dtype == torch.float32]  # the reference's are float64
        assert ((20, caps_out, 7) in shapes) != quick


@pytest.mark.parametrize(("dim_in", "fit"), [(32, True), (33, False), (128, False)])
def test_wide_input_capsules_leave_no_room_for_their_matrices(dim_in: int, fit: bool) -> None:
    assert fits(torch.empty(10, 1, 16, dim_in)) == fit


@pytest.mark.skipif(DEVICE == "cpu", reason="Triton's interpreter multiplies no bfloat16")
@pytest.mark.parametrize("over", ["outputs", "inputs"])
def test_half_precision_adds_up_in_float32(over: Over) -> None:
    u, weight, g = problem(16, 64, 3, 8, 8)
    u, weight = u.bfloat16(), weight.bfloat16()
    found, wanted = both(u, weight, g, 3, "dot", over, "last")
    assert found[0].dtype == torch.bfloat16
    assert max(map(apart, found, wanted)) < 2e-2


@pytest.mark.skipif(DEVICE == "cpu", reason="tf32 is a GPU's")
@pytest.mark.parametrize("over", ["outputs", "inputs"])
def test_tf32_is_taken_where_torch_allows_it(over: Over, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond float32's rounding, and no worse than torch's own products, which round the same factors as often."""
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    u, weight, g = problem(64, 256, 10, 16, 8)
    found, wanted = both(u, weight, g, 3, "dot", over, "last")
    a, w = (x.clone().requires_grad_() for x in (u, weight))
    v = route_reference(a, w, 3, over=over).v
    usual = [v, *torch.autograd.grad(v, (a, w), g)]
    for ours, torchs, exact in zip(found, usual, wanted, strict=True):
        assert 1e-6 < apart(ours, exact) < 2 * apart(torchs, exact)


@pytest.mark.parametrize("over", ["outputs", "inputs"])
def test_large_logits_neither_overflow_nor_lose_the_winner(over: Over) -> None:
    u, weight, g = problem(4, 12, 3, 4, 4)
    found, wanted = both(30 * u, 30 * weight, g, 3, "dot", over, "last")
    assert all(torch.isfinite(x).all() for x in found)
    assert apart(found[0], wanted[0]) < 1e-3


def test_zero_capsules_give_zero_and_finite_gradients() -> None:
    u, weight, g = problem(3, 6, 2, 4, 4)
    for agreement in ("dot", "cosine"):
        a, w = torch.zeros_like(u).requires_grad_(), weight.clone().requires_grad_()
        v = route(a, w, 3, agreement=agreement, backend="fused")
        assert not v.any()
        assert all(torch.isfinite(x).all() for x in torch.autograd.grad(v, (a, w), g))


def test_two_runs_agree_bit_for_bit() -> None:
    u, weight, g = problem(20, 20, 3, 6, 8)
    first, second = (both(u, weight, g, 3, "dot", "outputs", "last")[0] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_squash_and_its_gradient_far_from_and_near_to_zero() -> None:
    """Lengths 0, 1e-12, 1 and 1e12, where squares leave the number range."""
    from gencaps.primitives.routing_fused import through_squash

    s = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    s = s / s.norm(dim=-1, keepdim=True) * torch.tensor([0.0, 1e-12, 1.0, 1e12], device=DEVICE)[:, None, None]
    g = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    exact = s.double().requires_grad_()
    (wanted,) = torch.autograd.grad(squash(exact), exact, g.double())
    torch.testing.assert_close(through_squash(s, g).double(), wanted, rtol=1e-4, atol=1e-30)


def test_operators_obey_torchs_rules() -> None:
    from gencaps.primitives.routing_fused import routed, routed_sum

    for over_outputs, caps_out in ((True, 2), (True, 17), (False, 2)):  # 17 are too many to hold their votes
        u, weight, v = problem(4, 6, caps_out, 3, 4)
        torch.library.opcheck(
            routed_sum,
            (u.requires_grad_(), u, weight.requires_grad_(), v.requires_grad_(), over_outputs, False, False, True),
            test_utils=RULES,
        )
        torch.library.opcheck(routed, (u, u, weight, 3, over_outputs, False), test_utils=RULES)


def test_what_the_kernels_lack_is_left_to_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    u, weight, _ = problem(2, 3, 2, 2, 2)
    assert choose(u, weight, "cosine", "all", "auto") == "plain"
    assert choose(u.double(), weight, "dot", "last", "auto") == "plain"
    assert choose(u, weight, "dot", "last", "auto") == ("fused" if DEVICE == "cuda" else "plain")
    for default in ("plain", "auto"):
        monkeypatch.setattr(routing_backend, "DEFAULT", default)
        assert choose(u, weight, "dot", "last") == choose(u, weight, "dot", "last", default)
    monkeypatch.setattr(routing_backend, "DEFAULT", "plain")
    assert choose(u, weight, "dot", "last", "auto") == ("fused" if DEVICE == "cuda" else "plain")
    assert choose(u, weight, "dot", "last", "plain") == "plain"
    assert choose(u, weight, "dot", "last", "fused") == "fused"
    refused(lambda: choose(u.double(), weight, "dot", "last", "fused"), "fused", "float64", "auto")
    refused(lambda: choose(u, weight, "cosine", "all", "fused"), "cosine", "auto")
    refused(lambda: choose(u, weight, "dot", "last", "fusd"), "fusd", "fused")
