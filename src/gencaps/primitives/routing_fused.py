"""Routing by agreement through the Triton kernels as operators of torch: a round, and all of them, with gradients."""

from __future__ import annotations

from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.routing_rounds import (
    all_rounds,
    empty,
    is_quick,
    one_round,
    room,
    squash_gradient,
    sum_gradients,
)
from gencaps.primitives.squash import direction, squash

Inputs = Float[Tensor, "batch caps_in dim_in"]
Weights = Float[Tensor, "caps_out caps_in dim_out dim_in"]
Outputs = Float[Tensor, "batch caps_out dim_out"]


_CHOICES = "bool over_outputs, bool cosine, bool even, bool through"


# the schema is spelt out because type checkers that wrap functions hide it from torch
@torch.library.custom_op(
    "gencaps::routed_sum",
    mutates_args=(),
    schema=f"(Tensor u, Tensor compared, Tensor weight, Tensor v, {_CHOICES}) -> (Tensor, Tensor, Tensor)",
)
def routed_sum(
    u: Tensor, compared: Tensor, weight: Tensor, v: Tensor, over_outputs: bool, cosine: bool, even: bool, through: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gives ``s_j = sum_i c_ij W_ij u_i``, (Sabour et al., 2017), Eq. (2), the logits and their log-sum-exp.

    Args:
        u: input capsules.
        compared: what the logits are made from: u, or its directions for the cosine.
        weight: ``W_ij``.
        v: ``V_j``, the sum of what votes were compared with so far.
        over_outputs: normalises over an input's outputs, else over an output's inputs.
        cosine: divides each logit by the length of its vote.
        even: takes all coefficients alike, as the first round does, and does not look at v.
        through: lets gradients run through the coefficients, to v too; not for the cosine.
    """
    part, logits = one_round(u, compared, weight, v, over_outputs, cosine, even, False)
    return part.sum(0), *(logits or room(u, weight, over_outputs, True))


@routed_sum.register_fake
def _(u, compared, weight, v, over_outputs, cosine, even, through):
    return empty(u, u.shape[0], weight.shape[0], weight.shape[2]), *room(u, weight, over_outputs, even)


routed_sum_gradients = torch.library.custom_op(
    "gencaps::routed_sum_gradients",
    sum_gradients,
    mutates_args=(),
    schema="(Tensor u, Tensor weight, Tensor v, Tensor s, Tensor b, Tensor lse, Tensor g, "
    "bool over_outputs, bool even, bool through) -> (Tensor, Tensor, Tensor)",
)


@routed_sum_gradients.register_fake
def _(u, weight, v, s, b, lse, g, over_outputs, even, through):
    return torch.empty_like(u), torch.empty_like(weight), torch.empty_like(v)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    u, _, weight, v, over_outputs, _, even, through = inputs
    ctx.choices = over_outputs, even, through
    ctx.save_for_backward(u, weight, v, *output)


def _gradients(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Any, ...]:
    du, dw, dv = routed_sum_gradients(*ctx.saved_tensors, g.contiguous(), *ctx.choices)
    _, even, through = ctx.choices
    return du, None, dw, dv if through and not even else None, None, None, None, None


routed_sum.register_autograd(_gradients, setup_context=_remember)


routed = torch.library.custom_op(
    "gencaps::routed",
    all_rounds,
    mutates_args=(),
    schema="(Tensor u, Tensor compared, Tensor weight, int rounds, bool over_outputs, bool cosine) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


@routed.register_fake
def _(u, compared, weight, rounds, over_outputs, cosine):
    outputs = (empty(u, u.shape[0], weight.shape[0], weight.shape[2]) for _ in range(3))
    return *outputs, *room(u, weight, over_outputs, rounds == 1 or is_quick(weight, over_outputs, cosine))


through_squash = torch.library.custom_op(
    "gencaps::through_squash", squash_gradient, mutates_args=(), schema="(Tensor s, Tensor g) -> Tensor"
)


@through_squash.register_fake
def _(s, g):
    return torch.empty_like(s)


def _remember_all(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    u, _, weight, rounds, ctx.over_outputs, _ = inputs
    ctx.even = rounds == 1
    ctx.save_for_backward(u, weight, *output[1:])


def _back(ctx: Any, g: Tensor, through_squash: Any, sum_gradients: Any) -> tuple[Any, ...]:
    """Gives what reaches u and W from what reaches v, by these two."""
    u, weight, s, so_far, b, lse = ctx.saved_tensors
    reaching = through_squash(s, g.contiguous())
    du, dw, _ = sum_gradients(u, weight, so_far, s, b, lse, reaching, ctx.over_outputs, ctx.even, False)
    return du, None, dw, None, None, None


def _gradients_of_last(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Any, ...]:
    return _back(ctx, g, through_squash, routed_sum_gradients)


routed.register_autograd(_gradients_of_last, setup_context=_remember_all)


class AllRounds(torch.autograd.Function):
    """The operator ``routed`` without torch's registry, whose calls take the host longer than the kernels the GPU."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """Runs all rounds."""
        found = all_rounds(*inputs)
        _remember_all(ctx, inputs, found)
        return found[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Gives what reaches u and W from what reaches v."""
        return _back(ctx, gradients[0], squash_gradient, sum_gradients)


def route_fused(
    u: Inputs, weight: Weights, iterations: int, *, cosine: bool, over_outputs: bool, through: bool
) -> Outputs:
    """Routes capsules as ``routing.route`` does, in float32 whatever comes in, by the kernels.

    With ``through`` gradients run through all rounds (not for the cosine), else through the last one alone.
    """
    u, weight = u.contiguous(), weight.contiguous()
    compared = direction(u.detach().float()).to(u.dtype) if cosine else u
    if not through and torch.compiler.is_compiling():
        return routed(u, compared, weight, iterations, over_outputs, cosine)[0]
    if not through:
        return cast(Tensor, AllRounds.apply(u, compared, weight, iterations, over_outputs, cosine))
    v = s = u.new_zeros(u.shape[0], weight.shape[0], weight.shape[2], dtype=torch.float32)
    for done in range(iterations):
        s, *_ = routed_sum(u, compared, weight, v, over_outputs, cosine, done == 0, True)
        v = v + (direction(s) if cosine else squash(s))
    return squash(s)
