"""Routing by agreement between two layers of capsules, without writing down the votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gencaps.errors import GencapsError, nearest
from gencaps.primitives import routing_kernels
from gencaps.primitives.routing_backend import Backend, choose
from gencaps.primitives.routing_kernels import C, G, U, W
from gencaps.primitives.squash import direction, one_for_zero, squash

Agreement = Literal["dot", "cosine"]
"""How a vote is compared with the output: inner product (Sabour et al.) or cosine (Hauser)."""
Over = Literal["outputs", "inputs"]
"""What coefficients sum to one over: an input's outputs (Sabour et al.) or an output's inputs (Hauser)."""
Gradient = Literal["last", "all"]
"""Which rounds gradients run through: the last one, with its coefficients held fixed, or all of them."""


class Routed(NamedTuple):
    """The output capsules, and how much of each input capsule went to each of them."""

    v: Float[Tensor, "batch caps_out dim_out"]
    coefficients: Float[Tensor, "batch caps_out caps_in"]


def route(
    u: Float[Tensor, "batch caps_in dim_in"],
    weight: Float[Tensor, "caps_out caps_in dim_out dim_in"],
    iterations: int = 3,
    *,
    agreement: Agreement = "dot",
    over: Over = "outputs",
    gradient: Gradient = "last",
    backend: Backend | None = None,
) -> Float[Tensor, "batch caps_out dim_out"]:
    """Routes capsules to the layer above by agreement: ``route_with_coefficients`` without the coefficients.

    (Sabour et al., 2017), Procedure 1; (Hauser, 2020), Sec. 2.2.

    ``backend`` says what does the work: ``fused`` kernels on a GPU, ``plain`` torch anywhere, or by default whichever
    fits (``routing_backend``). Both mean the same; the fused one has first derivatives alone.
    """
    if choose(u, weight, agreement, gradient, backend) == "plain":
        return route_with_coefficients(u, weight, iterations, agreement=agreement, over=over, gradient=gradient).v
    _check(tuple(u.shape), tuple(weight.shape), iterations, agreement, over, gradient)
    from gencaps.primitives.routing_fused import route_fused

    dtype = torch.promote_types(u.dtype, weight.dtype)
    working = dtype if dtype == torch.bfloat16 else torch.float32
    with torch.autocast(u.device.type, enabled=False):
        v = route_fused(
            u.to(working),
            weight.to(working),
            iterations,
            cosine=agreement == "cosine",
            over_outputs=over == "outputs",
            through=gradient == "all",
        )
    return v.to(dtype)


def route_with_coefficients(
    u: Float[Tensor, "batch caps_in dim_in"],
    weight: Float[Tensor, "caps_out caps_in dim_out dim_in"],
    iterations: int = 3,
    *,
    agreement: Agreement = "dot",
    over: Over = "outputs",
    gradient: Gradient = "last",
) -> Routed:
    """Routes capsules to the layer above by agreement.

    Each input votes ``W_ij u_i`` for each output. From ``b_ij = 0``, every round takes ``c = softmax(b)``,
    (Sabour et al., 2017), Eq. (3), the sum ``s_j = sum_i c_ij W_ij u_i``, Eq. (2), and adds to ``b_ij`` the
    agreement of the vote with the outcome; the last round gives ``v_j = squash(s_j)``, Eq. (1).

    - ``dot``: ``b_ij += W_ij u_i . v_j``, (Sabour et al., 2017), Procedure 1.
    - ``cosine``: ``b_ij += cos(W_ij u_i, s_j)``, (Hauser, 2020), Sec. 2.2; 0 where either is the zero vector.
      A cosine does not see lengths, so the squash happens once, after the rounds; ``s_j`` is Hauser's
      ``z_j``, Eq. (3).

    The work is done in at least float32, whatever autocast says: the logits add up over rounds and ``s_j``
    over thousands of votes. The votes are never written down (see ``routing_kernels``); with
    ``gradient="last"`` the memory kept for the gradient does not depend on the number of rounds.

    Args:
        u: input capsules.
        weight: ``W_ij``, one matrix for each pair of capsules.
        iterations: rounds, at least 1 (a single round shares evenly).
        agreement: how votes are compared with the outcome.
        over: what the coefficients sum to one over.
        gradient: which rounds gradients run through.
    """
    _check(tuple(u.shape), tuple(weight.shape), iterations, agreement, over, gradient)
    dtype = torch.promote_types(u.dtype, weight.dtype)
    with torch.autocast(u.device.type, enabled=False):
        u, weight, u_last, weight_last = _laid_out(u, weight)
        # with "last", the rounds before the last only choose c; no gradient runs through them
        with torch.set_grad_enabled(gradient == "all" and torch.is_grad_enabled()):
            c = _choose(u, weight, u_last, weight_last, iterations, agreement, over)
        v = squash(routing_kernels.weighted_sum(c, u_last, weight_last))
    return Routed(v.transpose(0, 1).to(dtype), c.transpose(0, 1))


@torch.no_grad()
def coefficients(
    u: Float[Tensor, "batch caps_in dim_in"],
    weight: Float[Tensor, "caps_out caps_in dim_out dim_in"],
    iterations: int = 3,
    *,
    agreement: Agreement = "dot",
    over: Over = "outputs",
) -> Float[Tensor, "batch caps_out caps_in"]:
    """Gives the coefficients of ``route_with_coefficients`` alone, held fixed, without the sum of the last round."""
    _check(tuple(u.shape), tuple(weight.shape), iterations, agreement, over, "last")
    with torch.autocast(u.device.type, enabled=False):
        return _choose(*_laid_out(u, weight), iterations, agreement, over).transpose(0, 1)


def _laid_out(
    u: Float[Tensor, "batch caps_in dim_in"], weight: Float[Tensor, "caps_out caps_in dim_out dim_in"]
) -> tuple[Tensor, Tensor, U, W]:
    """Gives both in at least float32, as they are and with the input capsules last."""
    dtype = torch.promote_types(torch.promote_types(u.dtype, weight.dtype), torch.float32)
    u, weight = u.to(dtype), weight.to(dtype)
    return u, weight, u.transpose(1, 2).contiguous(), weight.permute(0, 2, 3, 1).contiguous()


def _choose(
    u: Float[Tensor, "batch caps_in dim_in"],
    weight: Float[Tensor, "caps_out caps_in dim_out dim_in"],
    u_last: U,
    weight_last: W,
    iterations: int,
    agreement: str,
    over: str,
) -> C:
    """Gives the coefficients of the last round."""
    axis = 0 if over == "outputs" else 2
    b = u.new_zeros(weight.shape[0], u.shape[0], u.shape[1])
    if iterations == 1:
        return torch.softmax(b, axis)
    compare = _dot(u_last, weight_last) if agreement == "dot" else _cosine(u, weight, weight_last)
    for _ in range(iterations - 1):
        b += compare(routing_kernels.weighted_sum(torch.softmax(b, axis), u_last, weight_last))
    return torch.softmax(b, axis)


def _dot(u_last: U, weight_last: W) -> Callable[[G], C]:
    """Gives the function of s that compares each vote with ``squash(s)`` by inner product."""
    return lambda s: routing_kernels.agreement(u_last, weight_last, squash(s))


def _cosine(
    u: Float[Tensor, "batch caps_in dim_in"],
    weight: Float[Tensor, "caps_out caps_in dim_out dim_in"],
    weight_last: W,
) -> Callable[[G], C]:
    """Gives the function of s that compares each vote with s by cosine, 0 where either is the zero vector."""
    # a cosine does not see the length of u either; without it the votes of short capsules do not underflow
    unit = direction(u)
    unit_last = unit.transpose(1, 2).contiguous()
    # for some output capsules at a time, so that at most a quarter of the votes exists at once, in the gradient too.
    # ||W u||^2 = u . (W^T W) u needs no votes, but loses all digits where W is nearly singular along u.
    each = u.shape[0] * u.shape[1] * weight.shape[2]
    at_once = max(1, min(weight.shape[0] // 4, routing_kernels.working_elements(u) // max(1, each)))
    # scaled by the largest element of each matrix, so that no square leaves the number range
    scale = one_for_zero(weight.detach().abs().amax((2, 3), keepdim=True))
    parts = (weight / scale).split(at_once)
    if torch.is_grad_enabled():
        lengths = [checkpoint(_vote_lengths, unit, w, use_reentrant=False, preserve_rng_state=False) for w in parts]
    else:
        lengths = [_vote_lengths(unit, w) for w in parts]
    vote_lengths = (torch.cat(lengths) * scale[..., 0].transpose(1, 2)).clamp(min=torch.finfo(u.dtype).eps)
    return lambda s: routing_kernels.agreement(unit_last, weight_last, direction(s)) / vote_lengths


def _vote_lengths(
    u: Float[Tensor, "batch caps_in dim_in"], weight: Float[Tensor, "some caps_in dim_out dim_in"]
) -> Float[Tensor, "some batch caps_in"]:
    """Measures the votes ``W_ij u_i`` for some output capsules."""
    # in this order einsum leaves the axis that is summed over last in memory: up to four times as fast on a CPU
    votes = torch.einsum("bid,jiod->ibjo", u, weight)
    return torch.linalg.vector_norm(votes, dim=-1).permute(2, 1, 0)


def _check(
    u: tuple[int, ...], weight: tuple[int, ...], iterations: int, agreement: str, over: str, gradient: str
) -> None:
    """Refuses what routing cannot mean; in particular shapes that happen to multiply out but do not fit."""
    if len(u) != 3 or len(weight) != 4 or (u[1], u[2]) != (weight[1], weight[3]):
        raise GencapsError(
            f"routing: u {u} does not fit weight {weight}; give u (batch, caps_in, dim_in) "
            "and weight (caps_out, caps_in, dim_out, dim_in)"
        )
    if iterations < 1:
        raise GencapsError(f"routing: iterations is {iterations}; give 1 or more")
    for name, value, choices in (
        ("agreement", agreement, get_args(Agreement)),
        ("over", over, get_args(Over)),
        ("gradient", gradient, get_args(Gradient)),
    ):
        if value not in choices:
            raise GencapsError(f"routing: {name} '{value}' is not a choice{nearest(value, choices)}")
