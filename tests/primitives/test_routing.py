"""Laws of routing by agreement: values, gradients, invariances, bad points."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.errors import GencapsError
from gencaps.primitives import routing
from gencaps.primitives.routing import Agreement, Gradient, Over, route, route_with_coefficients
from gencaps.primitives.routing_kernels import agreement, weighted_sum
from gencaps.primitives.routing_reference import route_reference
from gencaps.primitives.squash import length, squash

WAYS: list[dict[str, Any]] = [
    {"agreement": a, "over": o, "gradient": g}
    for a, o, g in itertools.product(get_args(Agreement), get_args(Over), get_args(Gradient))
]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))


def _inputs(
    batch: int = 3,
    caps_in: int = 5,
    caps_out: int = 4,
    dim_in: int = 2,
    dim_out: int = 3,
    *,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, caps_in, dim_in, generator=generator, dtype=dtype)
    weight = torch.randn(caps_out, caps_in, dim_out, dim_in, generator=generator, dtype=dtype)
    return u.requires_grad_(), weight.requires_grad_()


def test_two_rounds_give_the_numbers_worked_by_hand() -> None:
    # Two inputs of one number, 1 and 3; votes 1 and 3 for the first of two outputs, 2 and -3 for the second.
    u = torch.tensor([[[1.0], [3.0]]])
    weight = torch.tensor([[[[1.0]], [[1.0]]], [[[2.0]], [[-1.0]]]])
    # Round 1, c = 1/2: s = (2, -1/2); v = s |s| / (1 + s^2) = (4/5, -1/5).
    # b = vote . v: first output 4/5, 12/5; second output -2/5, 3/5.
    # Round 2: c of input 1 for output 1 = sigmoid(4/5 + 2/5), of input 2 = sigmoid(12/5 - 3/5).
    c_1, c_2 = 1 / (1 + math.exp(-1.2)), 1 / (1 + math.exp(-1.8))
    s = torch.tensor([c_1 * 1 + c_2 * 3, (1 - c_1) * 2 - (1 - c_2) * 3])
    v, c = route_with_coefficients(u, weight, 2)
    torch.testing.assert_close(c, torch.tensor([[[c_1, c_2], [1 - c_1, 1 - c_2]]]))
    torch.testing.assert_close(v, (s * s.abs() / (1 + s * s)).view(1, 2, 1))


def test_cosine_over_inputs_gives_the_numbers_worked_by_hand() -> None:
    # Votes (1, 0) and (0, 2) for one output. Round 1, c = 1/2: s = (1/2, 1), cosines 1/sqrt 5 and 2/sqrt 5.
    # Round 2: c of the second input = sigmoid(1/sqrt 5); its length of 2 has no say in it.
    u = torch.tensor([[[1.0], [2.0]]])
    weight = torch.tensor([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    c_2 = 1 / (1 + math.exp(-1 / math.sqrt(5)))
    v, c = route_with_coefficients(u, weight, 2, agreement="cosine", over="inputs")
    torch.testing.assert_close(c, torch.tensor([[[1 - c_2, c_2]]]))
    torch.testing.assert_close(v, squash(torch.tensor([[[1 - c_2, 2 * c_2]]])))


@every_way
@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_outputs_and_gradients_equal_those_with_votes_written_down(way: dict[str, Any], iterations: int) -> None:
    u, weight = _inputs()
    ours, theirs = (f(u, weight, iterations, **way) for f in (route_with_coefficients, route_reference))
    torch.testing.assert_close(ours.v, theirs.v)
    torch.testing.assert_close(ours.coefficients, theirs.coefficients)
    pull = torch.randn(ours.v.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for mine, other in zip(
        torch.autograd.grad(ours.v, (u, weight), pull),
        torch.autograd.grad(theirs.v, (u, weight), pull),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("agreement", get_args(Agreement))
@pytest.mark.parametrize("over", get_args(Over))
def test_gradient_through_all_rounds_agrees_with_finite_differences(agreement: Agreement, over: Over) -> None:
    u, weight = _inputs(2, 3, 2, 2, 3)
    assert torch.autograd.gradcheck(
        lambda u, w: tuple(route_with_coefficients(u, w, 3, agreement=agreement, over=over, gradient="all")),
        (u, weight),
    )


@pytest.mark.parametrize("agreement", get_args(Agreement))
@pytest.mark.parametrize("over", get_args(Over))
def test_gradient_through_the_last_round_is_that_of_fixed_coefficients(agreement: Agreement, over: Over) -> None:
    u, weight = _inputs()
    v, c = route_with_coefficients(u, weight, 3, agreement=agreement, over=over)
    fixed = c.detach()

    def last_round(u: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return squash(torch.einsum("bji,jiod,bid->bjo", fixed, weight, u))

    pull = torch.randn(v.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours = torch.autograd.grad(v, (u, weight), pull)
    for mine, other in zip(ours, torch.autograd.grad(last_round(u, weight), (u, weight), pull), strict=True):
        torch.testing.assert_close(mine, other)
    # the trap: the gradient through all rounds is another one, so early rounds leaking in would be seen here
    through_all = route(u, weight, 3, agreement=agreement, over=over, gradient="all")
    assert not torch.allclose(torch.autograd.grad(through_all, weight, pull)[0], ours[1], rtol=1e-3)
    assert not c.requires_grad


def test_the_sums_over_votes_can_be_differentiated_twice() -> None:
    generator = torch.Generator().manual_seed(0)
    c, u, weight, g = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in [(2, 3, 4), (3, 2, 4), (2, 5, 2, 4), (2, 3, 5)]
    )
    torch.testing.assert_close(weighted_sum(c, u, weight), torch.einsum("jbi,bdi,jodi->jbo", c, u, weight))
    torch.testing.assert_close(agreement(u, weight, g), torch.einsum("bdi,jodi,jbo->jbi", u, weight, g))
    for form, inputs in ((weighted_sum, (c, u, weight)), (agreement, (u, weight, g))):
        assert torch.autograd.gradcheck(form, inputs)
        assert torch.autograd.gradgradcheck(form, inputs)


@pytest.mark.parametrize("block", [1, 100, 10**6])
def test_results_do_not_depend_on_the_size_of_the_working_space(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    u, weight = _inputs(caps_out=7)
    expected = route_reference(u, weight, 3).v
    monkeypatch.setattr("gencaps.primitives.routing_kernels._CPU_BLOCK", block)
    v = route(u, weight, 3)
    torch.testing.assert_close(v, expected)
    torch.testing.assert_close(torch.autograd.grad(v.sum(), weight), torch.autograd.grad(expected.sum(), weight))


@every_way
def test_permuting_the_input_capsules_changes_nothing(way: dict[str, Any]) -> None:
    u, weight = _inputs()
    order = torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(route(u[:, order], weight[:, order], **way), route(u, weight, **way))


@every_way
def test_permuting_the_output_capsules_permutes_the_result(way: dict[str, Any]) -> None:
    u, weight = _inputs()
    order = torch.tensor([3, 1, 0, 2])
    torch.testing.assert_close(route(u, weight[order], **way), route(u, weight, **way)[:, order])


@every_way
def test_turning_the_outputs_space_turns_the_result(way: dict[str, Any]) -> None:
    u, weight = _inputs()
    turn, _ = torch.linalg.qr(_inputs(dim_in=3, seed=5)[1][0, 0].detach())
    turned = torch.einsum("po,jiod->jipd", turn, weight)
    torch.testing.assert_close(route(u, turned, **way), route(u, weight, **way) @ turn.T)


@every_way
def test_examples_do_not_see_each_other(way: dict[str, Any]) -> None:
    u, weight = _inputs()
    one_by_one = torch.cat([route(u[k : k + 1], weight, **way) for k in range(len(u))])
    torch.testing.assert_close(route(u, weight, **way), one_by_one)


@every_way
@pytest.mark.parametrize("iterations", [1, 3])
def test_coefficients_sum_to_one_over_what_was_asked(way: dict[str, Any], iterations: int) -> None:
    c = route_with_coefficients(*_inputs(), iterations, **way).coefficients
    total = c.sum(1 if way["over"] == "outputs" else 2)
    torch.testing.assert_close(total, torch.ones_like(total))
    if iterations == 1:
        torch.testing.assert_close(c, torch.full_like(c, 1 / (4 if way["over"] == "outputs" else 5)))


def test_agreeing_votes_draw_coefficients() -> None:
    # inputs 0 to 3 vote alike for output 0, input 4 the opposite; all vote the same small thing for output 1
    u = torch.ones(1, 5, 1)
    weight = torch.tensor([[1.0, 1.0, 1.0, 1.0, -1.0], [0.1] * 5]).view(2, 5, 1, 1)
    c = route_with_coefficients(u, weight, 3).coefficients[0]
    assert (c[0, :4] > 0.6).all()
    assert c[0, 4] < 0.4


def test_cosine_does_not_see_the_lengths_of_the_inputs() -> None:
    u, weight = _inputs(dtype=torch.float32)
    sizes = torch.tensor([1e-5, 1e-2, 1.0, 1e2, 1e5]).view(1, 5, 1)
    # one comparison: with two, s has already been weighed by lengths. Even votes: c = 1/4 in the first round
    s = torch.einsum("jiod,bid->bjo", weight, u * sizes) / 4
    votes = torch.einsum("jiod,bid->bjio", weight, u)
    expected = torch.cosine_similarity(votes, s.unsqueeze(2), dim=-1).softmax(1)
    c = route_with_coefficients(u * sizes, weight, 2, agreement="cosine").coefficients
    torch.testing.assert_close(c, expected, rtol=1e-4, atol=1e-5)


@every_way
@pytest.mark.parametrize("size", [0.0, 1e-38, 1e-20, 1e-8, 1.0, 1e8])
@pytest.mark.parametrize("zero_weight", [False, True])
def test_values_and_gradients_are_finite_at_zero_tiny_and_huge_inputs(
    way: dict[str, Any], size: float, zero_weight: bool
) -> None:
    u, weight = (x.detach() for x in _inputs(dtype=torch.float32))
    u = (u * size).requires_grad_()
    weight[1:2] *= 0.0 if zero_weight else 1.0
    weight.requires_grad_()
    v, c = route_with_coefficients(u, weight, 3, **way)
    (v.sum() + c.square().sum()).backward()
    for tensor in (v, c, u.grad, weight.grad):
        assert tensor is not None
        assert torch.isfinite(tensor).all()


def test_cosine_with_a_zero_capsule_is_zero() -> None:
    u, weight = (x.detach() for x in _inputs())
    u[:, 2] = 0
    c = route_with_coefficients(u, weight, 3, agreement="cosine").coefficients
    torch.testing.assert_close(c[:, :, 2], torch.full_like(c[:, :, 2], 1 / 4))  # its logits stay 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_inputs_are_routed_in_float32(dtype: torch.dtype) -> None:
    u, weight = (x.detach().to(dtype) for x in _inputs(batch=4, caps_in=64))
    v, c = route_with_coefficients(u, weight)
    expected = route_with_coefficients(u.float(), weight.float())
    assert v.dtype == dtype
    torch.testing.assert_close(v, expected.v.to(dtype), rtol=0, atol=0)
    torch.testing.assert_close(c, expected.coefficients, rtol=0, atol=0)


@every_way
def test_autocast_changes_nothing(way: dict[str, Any]) -> None:
    u, weight = _inputs(dtype=torch.float32)
    expected = route(u, weight, **way)
    pull = torch.ones_like(expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        v = route(u, weight, **way)
    torch.testing.assert_close(v, expected, rtol=0, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(v, (u, weight), pull), torch.autograd.grad(expected, (u, weight), pull)
    )


def test_routing_works_where_gradients_are_off() -> None:
    u, weight = _inputs()
    with torch.no_grad():
        v = route(u, weight, gradient="all")
    assert not v.requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(
            route(u, weight, agreement="cosine"), route_reference(u, weight, agreement="cosine").v
        )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 3),
    st.tuples(*[st.integers(1, 5)] * 4),
    st.integers(1, 3),
    st.sampled_from(WAYS),
)
def test_any_shape_routes(batch: int, sizes: tuple[int, int, int, int], iterations: int, way: dict[str, Any]) -> None:
    caps_in, caps_out, dim_in, dim_out = sizes
    u, weight = _inputs(batch, caps_in, caps_out, dim_in, dim_out)
    v, c = route_with_coefficients(u, weight, iterations, **way)
    assert v.shape == (batch, caps_out, dim_out)
    assert c.shape == (batch, caps_out, caps_in)
    assert (length(v) < 1).all()
    expected = route_reference(u, weight, iterations, **way).v
    torch.testing.assert_close(v, expected)
    grads = torch.autograd.grad(v.sum(), (u, weight))
    torch.testing.assert_close(grads, torch.autograd.grad(expected.sum(), (u, weight)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iterations": 0}, "iterations is 0; give 1 or more"),
        ({"agreement": "cosin"}, "'cosin' is not a choice (did you mean 'cosine'?)"),
        ({"over": "output"}, "did you mean 'outputs'?"),
        ({"gradient": "first"}, "known: all, last"),
        # 2 x 6 = 3 x 4 numbers: it would multiply out, and mean nothing
        ({"u": (1, 2, 6)}, "u (1, 2, 6) does not fit weight (5, 3, 2, 4)"),
    ],
)
def test_what_routing_cannot_mean_is_refused_in_one_line(change: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {
        "u": (1, 3, 4),
        "weight": (5, 3, 2, 4),
        "iterations": 3,
        "agreement": "dot",
        "over": "outputs",
        "gradient": "last",
    }
    routing._check(**good)
    with pytest.raises(GencapsError) as refused:
        routing._check(**{**good, **change})
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


COMPILED = """
import torch
from gencaps.primitives.routing import route

u, weight = torch.rand(2, 3, 4, requires_grad=True), torch.rand(5, 3, 2, 4, requires_grad=True)
expected, v = route(u, weight), torch.compile(route, backend="aot_eager")(u, weight)
torch.testing.assert_close(v, expected)
torch.testing.assert_close(
    torch.autograd.grad(v.sum(), (u, weight)), torch.autograd.grad(expected.sum(), (u, weight))
)
"""


def test_routing_can_be_compiled() -> None:
    # in a process of its own: the checks of shapes that the tests switch on cannot be compiled
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
