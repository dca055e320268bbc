"""Routing by agreement through the Triton kernels: one operator for a round, with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.routing_launch import kernels, launch, vote_kernels
from gencaps.primitives.routing_plan import (
    CAPSULES,
    LEAST,
    LOGITS,
    SUMS,
    TO_INPUTS,
    TO_WEIGHTS,
    Plan,
    padded,
    parts,
    share,
)
from gencaps.primitives.routing_votes_plan import EVEN, VOTES, Wide, WidePlan, even_plan, fits, votes_plan
from gencaps.primitives.squash import direction, squash

Inputs = Float[Tensor, "batch caps_in dim_in"]
Weights = Float[Tensor, "caps_out caps_in dim_out dim_in"]
Outputs = Float[Tensor, "batch caps_out dim_out"]


def _precision(u: Tensor) -> dict[str, Any]:
    """Says how matrices are multiplied: as torch is allowed to, and in half precision where the inputs are."""
    half = u.dtype == torch.bfloat16
    return {"PREC": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee", "HALF": half}


def _empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


class Round(NamedTuple):
    """What a round leaves behind."""

    part: Float[Tensor, "chunks batch caps_out dim_out"]
    """The weighted sums over chunks of the input capsules."""
    logits: tuple[Tensor, Tensor] | None = None
    """The logits and their log-sum-exp, as ``_kept`` has them; none in the first round and where they are not kept."""


def _kept(u: Tensor, weight: Tensor, over_outputs: bool, nothing: bool) -> tuple[Tensor, Tensor]:
    """Makes room for the logits, (batch, caps_out, caps_in), and their log-sum-exp, (batch, caps_in or caps_out)."""
    if nothing:
        return _empty(u, 0), _empty(u, 0)
    (batch, caps_in, _), caps_out = u.shape, weight.shape[0]
    return _empty(u, batch, caps_out, caps_in), _empty(u, batch, caps_in if over_outputs else caps_out)


def _logits(compared: Tensor, weight: Tensor, v: Tensor, over_outputs: bool, cosine: bool) -> tuple[Tensor, Tensor]:
    """Gives the logits and their log-sum-exp."""
    precision, plan = _precision(compared), Plan.of(compared, weight, LOGITS)
    b, lse = _kept(compared, weight, over_outputs, False)
    if over_outputs:
        launch(
            kernels.log_sums_over_outputs, plan.by_tile, compared, weight, v, b, lse, *plan.extent,
            COSINE=cosine, **plan.constants, **precision,
        )  # fmt: skip
        return b, lse
    some = _empty(compared, plan.chunks, len(compared), len(weight))
    launch(
        kernels.log_sums_over_inputs, plan.by_chunk, compared, weight, v, b, some, *plan.extent,
        TILES=plan.tiles, COSINE=cosine, **plan.constants, **precision,
    )  # fmt: skip
    return b, some.logsumexp(0)


def _sums(
    u: Tensor, weight: Tensor, b: Tensor, lse: Tensor, g: Tensor, total: Tensor, over_outputs: bool, slopes: bool
) -> Tensor:
    """Gives votes weighted by their coefficients, or by the slopes of these, summed over chunks of input capsules."""
    plan = Plan.of(u, weight, SUMS)
    part = _empty(u, plan.chunks, len(u), len(weight), weight.shape[2])
    launch(
        kernels.weighted_sums, plan.by_chunk, u, weight, b, lse, g, total, part, *plan.extent,
        TILES=plan.tiles, SLOPES=slopes, OVER_OUTPUTS=over_outputs, PAIR=plan.pair, **plan.constants, **_precision(u),
    )  # fmt: skip
    return part


def _wide(u: Tensor, weight: Tensor, cut: Callable[..., WidePlan], tile: Wide) -> tuple[WidePlan, Tensor]:
    """Cuts a problem for a kernel that does all output capsules at once, and makes room for its sums."""
    (batch, caps_in, dim_in), (caps_out, _, dim_out, _) = u.shape, weight.shape
    plan = cut(batch, caps_in, caps_out, dim_out, dim_in, tile)
    return plan, _empty(u, plan.chunks, batch, caps_out, dim_out)


def _even_sums(u: Tensor, weight: Tensor, over_outputs: bool) -> Tensor:
    """Gives votes weighted alike, summed over chunks of input capsules."""
    plan, part = _wide(u, weight, even_plan, EVEN)
    given = (u, weight, part, *u.shape[:2], share(u, weight, over_outputs))
    launch(vote_kernels.even_sums, plan.grid, *given, **plan.constants, **_precision(u))
    return part


def _vote_sums(u: Tensor, weight: Tensor, v: Tensor) -> Tensor:
    """Gives votes weighted by the softmax over outputs of their agreement with v, summed over chunks."""
    plan, part = _wide(u, weight, votes_plan, VOTES)
    given = (u, weight, v, part, *u.shape[:2])
    launch(vote_kernels.round_of_votes, plan.grid, *given, **plan.constants, **_precision(u))
    return part


def _round(
    u: Tensor, compared: Tensor, weight: Tensor, v: Tensor, over_outputs: bool, cosine: bool, even: bool, quick: bool
) -> Round:
    """Runs the kernels of one round; the quick way keeps no logits."""
    if even:
        return Round(_even_sums(u, weight, over_outputs))
    if quick:
        return Round(_vote_sums(u, weight, v))
    b, lse = _logits(compared, weight, v, over_outputs, cosine)
    return Round(_sums(u, weight, b, lse, v, lse, over_outputs, False), (b, lse))


def _settle(part: Tensor, v: Tensor | None, s: Tensor | None, *, direction: bool) -> Tensor:
    """Gives the squash of what the chunks add up to, or its direction, added to v; s takes what they add up to."""
    chunks, batch, caps_out, dim_out = part.shape
    out, capsules = _empty(part, batch, caps_out, dim_out), batch * caps_out
    launch(
        kernels.settle, (parts(capsules, CAPSULES), 1, 1), part, out if v is None else v, out if s is None else s, out,
        capsules, CHUNKS=chunks, O=dim_out, DO=max(LEAST, padded(dim_out)), R=CAPSULES, DIRECTION=direction,
        ADD=v is not None, KEEP=s is not None,
    )  # fmt: skip
    return out


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
    part, logits = _round(u, compared, weight, v, over_outputs, cosine, even, False)
    return part.sum(0), *(logits or _kept(u, weight, over_outputs, True))


@routed_sum.register_fake
def _(u, compared, weight, v, over_outputs, cosine, even, through):
    return _empty(u, u.shape[0], weight.shape[0], weight.shape[2]), *_kept(u, weight, over_outputs, even)


def _sum_gradients(
    u: Tensor,
    weight: Tensor,
    v: Tensor,
    s: Tensor,
    b: Tensor,
    lse: Tensor,
    g: Tensor,
    over_outputs: bool,
    even: bool,
    through: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gives what reaches u, W and, where gradients run through the coefficients, v, from g, what reaches s."""
    if not even and not b.numel():  # the quick way kept none
        b, lse = _logits(u, weight, v, over_outputs, False)
    precision, through, total = _precision(u), through and not even, lse
    if through and over_outputs:
        plan, total = Plan.of(u, weight, LOGITS), _empty(u, *u.shape[:2])
        launch(
            kernels.totals_over_outputs, plan.by_tile, u, weight, b, lse, g, total, *plan.extent,
            **plan.constants, **precision,
        )  # fmt: skip
    elif through:
        total = (g * s).sum(-1)  # sum_i c_ij g_j . W_ij u_i
    du, dw = torch.empty_like(u), torch.empty_like(weight)
    seen = (u, weight, v, b, lse, g, total)
    flags = {"EVEN": even, "ALL": through, "OVER_OUTPUTS": over_outputs, **precision}
    plan = Plan.of(u, weight, TO_INPUTS)
    alike = share(u, weight, over_outputs)
    launch(kernels.to_inputs, plan.by_tile, *seen, du, *plan.extent, alike, **plan.constants, **flags)
    plan = Plan.of(u, weight, TO_WEIGHTS)
    launch(
        kernels.to_weights, plan.by_weight, *seen, dw, *plan.extent, alike,
        BLOCKS=plan.by_tile[0], PAIR=plan.pair, **plan.constants, **flags,
    )  # fmt: skip
    if not through:
        return du, dw, torch.empty_like(v)  # nobody asks for it
    return du, dw, _sums(u, weight, b, lse, g, total, over_outputs, True).sum(0)


routed_sum_gradients = torch.library.custom_op(
    "gencaps::routed_sum_gradients",
    _sum_gradients,
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


def _quick(weight: Tensor, over_outputs: bool, cosine: bool) -> bool:
    """Tells whether a round can hold votes in registers, for as long as it needs them."""
    return over_outputs and not cosine and fits(weight)


def _all_rounds(
    u: Tensor, compared: Tensor, weight: Tensor, rounds: int, over_outputs: bool, cosine: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Runs all rounds, with the coefficients of the last held fixed for the gradient.

    Gives ``v = squash(s)``, and what the gradient needs: s, V before the last round, its logits and their log-sum-exp.
    The quick way keeps no logits: the gradient makes them again.
    """
    quick = _quick(weight, over_outputs, cosine)
    s = _empty(u, u.shape[0], weight.shape[0], weight.shape[2])
    so_far = torch.empty_like(s) if rounds == 1 else s  # the first round does not look at it
    for done in range(rounds - 1):
        part = _round(u, compared, weight, so_far, over_outputs, cosine, done == 0, quick).part
        so_far = _settle(part, so_far if done else None, None, direction=cosine)
    part, logits = _round(u, compared, weight, so_far, over_outputs, cosine, rounds == 1, quick)
    v = _settle(part, None, s, direction=False)
    return v, s, so_far, *(logits or _kept(u, weight, over_outputs, True))


routed = torch.library.custom_op(
    "gencaps::routed",
    _all_rounds,
    mutates_args=(),
    schema="(Tensor u, Tensor compared, Tensor weight, int rounds, bool over_outputs, bool cosine) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


@routed.register_fake
def _(u, compared, weight, rounds, over_outputs, cosine):
    outputs = (_empty(u, u.shape[0], weight.shape[0], weight.shape[2]) for _ in range(3))
    return *outputs, *_kept(u, weight, over_outputs, rounds == 1 or _quick(weight, over_outputs, cosine))


def _squash_gradient(s: Tensor, g: Tensor) -> Tensor:
    """Gives what reaches s from g, what reaches squash(s)."""
    out, (batch, caps_out, dim_out) = torch.empty_like(s), s.shape
    capsules, do = batch * caps_out, max(LEAST, padded(dim_out))
    launch(kernels.through_squash, (parts(capsules, CAPSULES), 1, 1), s, g, out, capsules, O=dim_out, DO=do, R=CAPSULES)
    return out


through_squash = torch.library.custom_op(
    "gencaps::through_squash", _squash_gradient, mutates_args=(), schema="(Tensor s, Tensor g) -> Tensor"
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
        found = _all_rounds(*inputs)
        _remember_all(ctx, inputs, found)
        return found[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Gives what reaches u and W from what reaches v."""
        return _back(ctx, gradients[0], _squash_gradient, _sum_gradients)


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
