"""Routing by agreement through the Triton kernels: one operator for a round, with its gradients."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports] (an extra)
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.squash import direction, squash

Inputs = Float[Tensor, "batch caps_in dim_in"]
Weights = Float[Tensor, "caps_out caps_in dim_out dim_in"]
Outputs = Float[Tensor, "batch caps_out dim_out"]
LEAST = 16
"""The least side of a matrix that tensor cores multiply."""
PROGRAMS = 1024
"""How many programs a kernel should have at least, to keep every processor of a large GPU busy."""


def _load_kernels() -> Any:
    """Loads routing_triton.py by its file: Triton reads functions as they are written, and an import hook that checks
    types would wrap them."""
    spec = spec_from_file_location("gencaps.primitives.routing_triton", Path(__file__).with_name("routing_triton.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kernels = _load_kernels()


class Plan(NamedTuple):
    """How a problem is cut into tiles."""

    sizes: tuple[int, int, int, int, int]
    """batch, caps_in, caps_out, dim_out, dim_in."""
    blocks: dict[str, int]
    """Pictures and input capsules of a tile, and the two dimensions, padded to powers of two."""
    tiles: int
    """Tiles of a chunk of input capsules."""
    chunks: int

    @classmethod
    def of(cls, u: Tensor, weight: Tensor) -> Plan:
        """Cuts tiles of 64 pictures by 128 numbers of input capsules, smaller where there are fewer."""
        (batch, caps_in, dim_in), (caps_out, _, dim_out, _) = u.shape, weight.shape
        di, do = triton.next_power_of_2(dim_in), max(LEAST, triton.next_power_of_2(dim_out))
        bb = min(64, max(LEAST, triton.next_power_of_2(batch)))
        ib = max(1, LEAST // di, min(128 // di, triton.next_power_of_2(caps_in)))
        tiles = triton.cdiv(caps_in, ib)
        chunks = min(tiles, max(1, triton.cdiv(PROGRAMS, triton.cdiv(batch, bb) * caps_out)))
        per_chunk = triton.cdiv(tiles, chunks)
        return cls(
            (batch, caps_in, caps_out, dim_out, dim_in),
            {"BB": bb, "IB": ib, "DI": di, "DO": do},
            per_chunk,
            triton.cdiv(tiles, per_chunk),
        )

    @property
    def extent(self) -> tuple[int, int]:
        """What may change from call to call without compiling anew: batch and caps_in."""
        return self.sizes[:2]

    @property
    def constants(self) -> dict[str, int]:
        """What the kernels are compiled for."""
        return {**self.blocks, "J": self.sizes[2], "O": self.sizes[3], "D": self.sizes[4]}

    def share(self, over_outputs: bool) -> float:
        """The coefficient of the first round."""
        return 1 / (self.sizes[2] if over_outputs else self.sizes[1])

    @property
    def by_tile(self) -> tuple[int, int]:
        """The grid of a kernel that runs over the output capsules itself."""
        return triton.cdiv(self.sizes[0], self.blocks["BB"]), triton.cdiv(self.sizes[1], self.blocks["IB"])

    @property
    def by_chunk(self) -> tuple[int, int, int]:
        """The grid of a kernel that runs over a chunk of the input capsules."""
        return triton.cdiv(self.sizes[0], self.blocks["BB"]), self.sizes[2], self.chunks

    @property
    def by_weight(self) -> tuple[int, int]:
        """The grid of a kernel that runs over the pictures."""
        return self.sizes[2], triton.cdiv(self.sizes[1], self.blocks["IB"])


def _precision(u: Tensor) -> dict[str, Any]:
    """Says how matrices are multiplied: as torch is allowed to, and in half precision where the inputs are."""
    half = u.dtype == torch.bfloat16
    return {"PREC": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee", "HALF": half}


def _empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


_CHOICES = "bool over_outputs, bool cosine, bool even, bool through"


# the schema is spelt out because type checkers that wrap functions hide it from torch
@torch.library.custom_op(
    "gencaps::routed_sum",
    mutates_args=(),
    schema=f"(Tensor u, Tensor compared, Tensor weight, Tensor v, {_CHOICES}) -> (Tensor, Tensor)",
)
def routed_sum(
    u: Tensor, compared: Tensor, weight: Tensor, v: Tensor, over_outputs: bool, cosine: bool, even: bool, through: bool
) -> tuple[Tensor, Tensor]:
    """Gives ``s_j = sum_i c_ij W_ij u_i``, (Sabour et al., 2017), Eq. (2), and the logits' log-sum-exp.

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
    plan = Plan.of(u, weight)
    batch, caps_in, caps_out, dim_out, _ = plan.sizes
    how = {**plan.constants, **_precision(u), "COSINE": cosine}
    lse = _empty(u, 0) if even else _empty(u, batch, caps_in if over_outputs else caps_out)
    if over_outputs and not even:
        kernels.log_sums_over_outputs[plan.by_tile](compared, weight, v, lse, *plan.extent, **how)
    elif not even:
        parts = _empty(u, plan.chunks, batch, caps_out)
        kernels.log_sums_over_inputs[plan.by_chunk](compared, weight, v, parts, *plan.extent, TILES=plan.tiles, **how)
        lse = parts.logsumexp(0)
    part = _empty(u, plan.chunks, batch, caps_out, dim_out)
    kernels.weighted_sums[plan.by_chunk](
        u, compared, weight, v, lse, v, lse, part, *plan.extent, plan.share(over_outputs), TILES=plan.tiles,
        EVEN=even, SLOPES=False, OVER_OUTPUTS=over_outputs, **how,
    )  # fmt: skip
    return part.sum(0), lse


@routed_sum.register_fake
def _(u, compared, weight, v, over_outputs, cosine, even, through):
    batch, (caps_out, caps_in, dim_out, _) = u.shape[0], weight.shape
    lse = _empty(u, 0) if even else _empty(u, batch, caps_in if over_outputs else caps_out)
    return _empty(u, batch, caps_out, dim_out), lse


@torch.library.custom_op(
    "gencaps::routed_sum_gradients",
    mutates_args=(),
    schema="(Tensor u, Tensor compared, Tensor weight, Tensor v, Tensor s, Tensor lse, Tensor g, "
    f"{_CHOICES}) -> (Tensor, Tensor, Tensor)",
)
def routed_sum_gradients(
    u: Tensor,
    compared: Tensor,
    weight: Tensor,
    v: Tensor,
    s: Tensor,
    lse: Tensor,
    g: Tensor,
    over_outputs: bool,
    cosine: bool,
    even: bool,
    through: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gives what reaches u, W and, where gradients run through the coefficients, v, from g, what reaches s."""
    plan = Plan.of(u, weight)
    batch, caps_in, caps_out, dim_out, _ = plan.sizes
    how = {**plan.constants, **_precision(u), "COSINE": cosine}
    through = through and not even
    total = lse
    if through and over_outputs:
        total = _empty(u, batch, caps_in)
        kernels.totals_over_outputs[plan.by_tile](u, compared, weight, v, lse, g, total, *plan.extent, **how)
    elif through:
        total = (g * s).sum(-1)  # sum_i c_ij g_j . W_ij u_i
    du, dw = torch.empty_like(u), torch.empty_like(weight)
    seen, share = (u, compared, weight, v, lse, g, total), plan.share(over_outputs)
    flags = {"EVEN": even, "OVER_OUTPUTS": over_outputs, **how}
    kernels.to_inputs[plan.by_tile](*seen, du, *plan.extent, share, ALL=through, **flags)
    kernels.to_weights[plan.by_weight](*seen, dw, *plan.extent, share, BLOCKS=plan.by_tile[0], ALL=through, **flags)
    if not through:
        return du, dw, torch.zeros_like(v)
    part = _empty(u, plan.chunks, batch, caps_out, dim_out)
    kernels.weighted_sums[plan.by_chunk](*seen, part, *plan.extent, share, TILES=plan.tiles, SLOPES=True, **flags)
    return du, dw, part.sum(0)


@routed_sum_gradients.register_fake
def _(u, compared, weight, v, s, lse, g, over_outputs, cosine, even, through):
    return torch.empty_like(u), torch.empty_like(weight), torch.empty_like(v)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    u, compared, weight, v, *ctx.choices = inputs
    ctx.save_for_backward(u, compared, weight, v, *output)


def _gradients(ctx: Any, g: Tensor, _: Tensor) -> tuple[Any, ...]:
    du, dw, dv = routed_sum_gradients(*ctx.saved_tensors, g.contiguous(), *ctx.choices)
    return du, None, dw, dv, None, None, None, None


routed_sum.register_autograd(_gradients, setup_context=_remember)


def route_fused(
    u: Inputs, weight: Weights, iterations: int, *, cosine: bool, over_outputs: bool, through: bool
) -> Outputs:
    """Routes capsules as ``routing.route`` does, in float32 whatever comes in, by the kernels.

    With ``through`` gradients run through all rounds (not for the cosine), else through the last one alone.
    """
    u, weight = u.contiguous(), weight.contiguous()
    compared = direction(u.detach().float()).to(u.dtype) if cosine else u
    v = u.new_zeros(u.shape[0], weight.shape[0], weight.shape[2], dtype=torch.float32)
    s = v
    for done in range(iterations):
        last = done == iterations - 1
        with torch.set_grad_enabled(torch.is_grad_enabled() and (through or last)):
            s, _ = routed_sum(u, compared, weight, v, over_outputs, cosine, done == 0, through)
            if not last:
                v = v + (direction(s) if cosine else squash(s))
    return squash(s)
