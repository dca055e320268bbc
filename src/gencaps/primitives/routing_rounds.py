"""The rounds of routing by agreement and their gradients, as calls of the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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


def _precision(u: Tensor) -> dict[str, Any]:
    """Says how matrices are multiplied: as torch is allowed to, and in half precision where the inputs are."""
    half = u.dtype == torch.bfloat16
    return {"PREC": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee", "HALF": half}


def empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


class Round(NamedTuple):
    """What a round leaves behind."""

    part: Float[Tensor, "chunks batch caps_out dim_out"]
    """The weighted sums over chunks of the input capsules."""
    logits: tuple[Tensor, Tensor] | None = None
    """The logits and their log-sum-exp, as ``room`` has them; none in the first round and where they are not kept."""


def room(u: Tensor, weight: Tensor, over_outputs: bool, nothing: bool) -> tuple[Tensor, Tensor]:
    """Makes room for the logits, (batch, caps_out, caps_in), and their log-sum-exp, (batch, caps_in or caps_out)."""
    if nothing:
        return empty(u, 0), empty(u, 0)
    (batch, caps_in, _), caps_out = u.shape, weight.shape[0]
    return empty(u, batch, caps_out, caps_in), empty(u, batch, caps_in if over_outputs else caps_out)


def _logits(compared: Tensor, weight: Tensor, v: Tensor, over_outputs: bool, cosine: bool) -> tuple[Tensor, Tensor]:
    """Gives the logits and their log-sum-exp."""
    precision, plan = _precision(compared), Plan.of(compared, weight, LOGITS)
    b, lse = room(compared, weight, over_outputs, False)
    if over_outputs:
        launch(
            kernels.log_sums_over_outputs, plan.by_tile, compared, weight, v, b, lse, *plan.extent,
            COSINE=cosine, **plan.constants, **precision,
        )  # fmt: skip
        return b, lse
    some = empty(compared, plan.chunks, len(compared), len(weight))
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
    part = empty(u, plan.chunks, len(u), len(weight), weight.shape[2])
    launch(
        kernels.weighted_sums, plan.by_chunk, u, weight, b, lse, g, total, part, *plan.extent,
        TILES=plan.tiles, SLOPES=slopes, OVER_OUTPUTS=over_outputs, PAIR=plan.pair, **plan.constants, **_precision(u),
    )  # fmt: skip
    return part


def _wide(u: Tensor, weight: Tensor, cut: Callable[..., WidePlan], tile: Wide) -> tuple[WidePlan, Tensor]:
    """Cuts a problem for a kernel that does all output capsules at once, and makes room for its sums."""
    (batch, caps_in, dim_in), (caps_out, _, dim_out, _) = u.shape, weight.shape
    plan = cut(batch, caps_in, caps_out, dim_out, dim_in, tile)
    return plan, empty(u, plan.chunks, batch, caps_out, dim_out)


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


def one_round(
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
    out, capsules = empty(part, batch, caps_out, dim_out), batch * caps_out
    launch(
        kernels.settle, (parts(capsules, CAPSULES), 1, 1), part, out if v is None else v, out if s is None else s, out,
        capsules, CHUNKS=chunks, O=dim_out, DO=max(LEAST, padded(dim_out)), R=CAPSULES, DIRECTION=direction,
        ADD=v is not None, KEEP=s is not None,
    )  # fmt: skip
    return out


def is_quick(weight: Tensor, over_outputs: bool, cosine: bool) -> bool:
    """Tells whether a round can hold votes in registers, for as long as it needs them."""
    return over_outputs and not cosine and fits(weight)


def all_rounds(
    u: Tensor, compared: Tensor, weight: Tensor, rounds: int, over_outputs: bool, cosine: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Runs all rounds, with the coefficients of the last held fixed for the gradient.

    Gives ``v = squash(s)``, and what the gradient needs: s, V before the last round, its logits and their log-sum-exp.
    The quick way keeps no logits: the gradient makes them again.
    """
    quick = is_quick(weight, over_outputs, cosine)
    s = empty(u, u.shape[0], weight.shape[0], weight.shape[2])
    so_far = torch.empty_like(s) if rounds == 1 else s  # the first round does not look at it
    for done in range(rounds - 1):
        part = one_round(u, compared, weight, so_far, over_outputs, cosine, done == 0, quick).part
        so_far = _settle(part, so_far if done else None, None, direction=cosine)
    part, logits = one_round(u, compared, weight, so_far, over_outputs, cosine, rounds == 1, quick)
    v = _settle(part, None, s, direction=False)
    return v, s, so_far, *(logits or room(u, weight, over_outputs, True))


def sum_gradients(
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
        plan, total = Plan.of(u, weight, LOGITS), empty(u, *u.shape[:2])
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


def squash_gradient(s: Tensor, g: Tensor) -> Tensor:
    """Gives what reaches s from g, what reaches squash(s)."""
    out, (batch, caps_out, dim_out) = torch.empty_like(s), s.shape
    capsules, do = batch * caps_out, max(LEAST, padded(dim_out))
    launch(kernels.through_squash, (parts(capsules, CAPSULES), 1, 1), s, g, out, capsules, O=dim_out, DO=do, R=CAPSULES)
    return out
