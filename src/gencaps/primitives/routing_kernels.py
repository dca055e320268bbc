"""Sums over votes that never write the votes down.

Everything in routing by agreement is a derivative of one form, linear in each of its four arguments:

    T(c, u, W, g) = sum_bij c_jbi g_jb . (W_ij u_bi)

    dT/dg: s_jb = sum_i c_jbi W_ij u_bi      the weighted sum of the votes           -> weighted_sum
    dT/dc: a_jbi = g_jb . W_ij u_bi          the agreement of each vote with g       -> agreement
    dT/du, dT/dW                             what reaches the inputs and the weights

so the gradients of each of the four are the others, to any order. Each is a matrix product for each output
capsule j, of inner size ``caps_in * dim_in`` or ``dim_out``; the votes ``W_ij u_bi`` (batch x caps_in x
caps_out x dim_out) would take longer to write and to read than all of the arithmetic takes. What is kept for
the gradient is the arguments alone.

Layout: u (batch, dim_in, caps_in), W (caps_out, dim_out, dim_in, caps_in), c (caps_out, batch, caps_in),
g (caps_out, batch, dim_out): the input capsules come last, where ``c * u`` and the sum over dim_in run at
full speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

U = Float[Tensor, "batch dim_in caps_in"]
W = Float[Tensor, "caps_out dim_out dim_in caps_in"]
C = Float[Tensor, "caps_out batch caps_in"]
G = Float[Tensor, "caps_out batch dim_out"]

# elements in the working space. Smaller would suit the caches of a quiet CPU better (by a quarter), but each
# operation waits for all threads, and on a busy machine fewer waits save far more; launches cost too
_CPU_BLOCK = 2**23
_DEVICE_BLOCK = 2**25


def weighted_sum(c: C, u: U, weight: W) -> G:
    """Gives ``s_jb = sum_i c_jbi W_ij u_bi``. (Sabour et al., 2017), Eq. (2); (Hauser, 2020), Eq. (3)."""
    return _OverInputs.apply(c, u, weight)  # pyright: ignore[reportReturnType]


def agreement(u: U, weight: W, g: G) -> C:
    """Gives each vote's ``a_jbi = g_jb . W_ij u_bi``. (Sabour et al., 2017), Procedure 1."""
    return _ByVote.apply(u, weight, g)  # pyright: ignore[reportReturnType]


def to_inputs(c: C, weight: W, g: G) -> U:
    """Gives ``z_bi = sum_j c_jbi W_ij^T g_jb``, the way back with the same c. (Hauser, 2020), Algorithm 1."""
    return _ToInputs.apply(c, weight, g)  # pyright: ignore[reportReturnType]


class _Form(torch.autograd.Function):
    """One derivative of T; its own gradients are the three others."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


class _OverInputs(_Form):
    @staticmethod
    def forward(c, u, weight):
        s = c.new_empty(*c.shape[:2], weight.shape[1])
        w = weight.flatten(2)
        for j, space in _blocks(c.shape[0], u, weight.shape[1]):
            torch.mul(c[j].unsqueeze(2), u, out=space)
            torch.bmm(space.flatten(2), w[j].transpose(1, 2), out=s[j])
        return s

    @staticmethod
    def backward(ctx, *grad_outputs):
        c, u, weight = ctx.saved_tensors
        g = grad_outputs[0].contiguous()
        return (
            _ByVote.apply(u, weight, g) if ctx.needs_input_grad[0] else None,
            _ToInputs.apply(c, weight, g) if ctx.needs_input_grad[1] else None,
            _ToWeight.apply(c, u, g) if ctx.needs_input_grad[2] else None,
        )


class _ByVote(_Form):
    @staticmethod
    def forward(u, weight, g):
        a = u.new_empty(g.shape[0], u.shape[0], u.shape[2])
        w = weight.flatten(2)
        for j, space in _blocks(g.shape[0], u, weight.shape[1]):
            torch.bmm(g[j], w[j], out=space.flatten(2))
            torch.sum(space.mul_(u), 2, out=a[j])
        return a

    @staticmethod
    def backward(ctx, *grad_outputs):
        u, weight, g = ctx.saved_tensors
        c = grad_outputs[0].contiguous()
        return (
            _ToInputs.apply(c, weight, g) if ctx.needs_input_grad[0] else None,
            _ToWeight.apply(c, u, g) if ctx.needs_input_grad[1] else None,
            _OverInputs.apply(c, u, weight) if ctx.needs_input_grad[2] else None,
        )


class _ToInputs(_Form):
    @staticmethod
    def forward(c, weight, g):
        out = c.new_zeros(c.shape[1], *weight.shape[2:])
        w = weight.flatten(2)
        for j, space in _blocks(c.shape[0], out, weight.shape[1]):
            torch.bmm(g[j], w[j], out=space.flatten(2))
            out += space.mul_(c[j].unsqueeze(2)).sum(0)
        return out

    @staticmethod
    def backward(ctx, *grad_outputs):
        c, weight, g = ctx.saved_tensors
        u = grad_outputs[0].contiguous()
        return (
            _ByVote.apply(u, weight, g) if ctx.needs_input_grad[0] else None,
            _ToWeight.apply(c, u, g) if ctx.needs_input_grad[1] else None,
            _OverInputs.apply(c, u, weight) if ctx.needs_input_grad[2] else None,
        )


class _ToWeight(_Form):
    @staticmethod
    def forward(c, u, g):
        out = c.new_empty(g.shape[0], g.shape[2], u.shape[1] * u.shape[2])
        for j, space in _blocks(c.shape[0], u, g.shape[2]):
            torch.mul(c[j].unsqueeze(2), u, out=space)
            torch.bmm(g[j].transpose(1, 2), space.flatten(2), out=out[j])
        return out.unflatten(2, u.shape[1:])

    @staticmethod
    def backward(ctx, *grad_outputs):
        c, u, g = ctx.saved_tensors
        weight = grad_outputs[0].contiguous()
        return (
            _ByVote.apply(u, weight, g) if ctx.needs_input_grad[0] else None,
            _ToInputs.apply(c, weight, g) if ctx.needs_input_grad[1] else None,
            _OverInputs.apply(c, u, weight) if ctx.needs_input_grad[2] else None,
        )


def working_elements(like: Tensor) -> int:
    """Says how many elements a working space may have where a tensor is."""
    return _CPU_BLOCK if like.device.type == "cpu" else _DEVICE_BLOCK


def _blocks(caps_out: int, like: Tensor, dim_out: int) -> Iterator[tuple[slice, Tensor]]:
    """Yields blocks of output capsules, each with the same working space ``(block, *like.shape)``."""
    half_the_votes = caps_out * dim_out // (2 * like.shape[1])
    most = max(1, min(caps_out, half_the_votes, working_elements(like) // max(1, like.numel())))
    size = math.ceil(caps_out / math.ceil(caps_out / most))  # blocks of even size
    space = like.new_empty(size, *like.shape)
    for start in range(0, caps_out, size):
        yield slice(start, start + size), space[: caps_out - start]
