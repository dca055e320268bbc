"""Routing by agreement through the Triton kernels: one operator for a round, with its gradients."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.squash import direction, squash

Inputs = Float[Tensor, "batch caps_in dim_in"]
Weights = Float[Tensor, "caps_out caps_in dim_out dim_in"]
Outputs = Float[Tensor, "batch caps_out dim_out"]
LEAST = 16
"""The least side of a matrix that tensor cores multiply."""
CAPSULES = 32
"""Output capsules that one program settles."""
ALIGNED = 16
"""Bytes that addresses are multiples of where a kernel may read several numbers at once."""
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


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)


def _padded(size: int) -> int:
    """Gives the next power of two."""
    return 1 << (size - 1).bit_length()


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
        di, do = _padded(dim_in), max(LEAST, _padded(dim_out))
        bb = min(64, max(LEAST, _padded(batch)))
        ib = max(1, LEAST // di, min(128 // di, _padded(caps_in)))
        tiles = _parts(caps_in, ib)
        chunks = min(tiles, max(1, _parts(PROGRAMS, _parts(batch, bb) * caps_out)))
        per_chunk = _parts(tiles, chunks)
        return cls(
            (batch, caps_in, caps_out, dim_out, dim_in),
            {"BB": bb, "IB": ib, "DI": di, "DO": do},
            per_chunk,
            _parts(tiles, per_chunk),
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
        return _parts(self.sizes[0], self.blocks["BB"]), _parts(self.sizes[1], self.blocks["IB"])

    @property
    def by_chunk(self) -> tuple[int, int, int]:
        """The grid of a kernel that runs over a chunk of the input capsules."""
        return _parts(self.sizes[0], self.blocks["BB"]), self.sizes[2], self.chunks

    @property
    def by_capsule(self) -> tuple[int]:
        """The grid of a kernel that runs over output capsules alone."""
        return (_parts(self.sizes[0] * self.sizes[2], CAPSULES),)

    @property
    def by_weight(self) -> tuple[int, int]:
        """The grid of a kernel that runs over the pictures."""
        return self.sizes[2], _parts(self.sizes[1], self.blocks["IB"])


def _precision(u: Tensor) -> dict[str, Any]:
    """Says how matrices are multiplied: as torch is allowed to, and in half precision where the inputs are."""
    half = u.dtype == torch.bfloat16
    return {"PREC": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee", "HALF": half}


def _empty(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def _launch(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> None:
    """Launches a kernel, past Triton's own look at every argument where the same was launched before.

    A look takes longer than many a kernel. What a kernel was compiled for is all in the key: the constants, the types,
    and that every address is aligned (else Triton looks itself); no kernel is compiled for its other numbers.
    """
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    aligned = all(tensor.data_ptr() % ALIGNED == 0 for tensor in tensors)
    if not aligned or not tensors[0].is_cuda:
        kernel[grid](*args, **constants)
        return
    key = (kernel, tensors[0].device, tuple(tensor.dtype for tensor in tensors), tuple(constants.items()))
    known = _compiled.get(key)
    if known is None:
        _compiled[key] = kernel[grid](*args, **constants), [constants[name] for name in kernel.arg_names[len(args) :]]
        return
    ready, rest = known
    ready[(*grid, 1, 1)[:3]](*args, *rest)


_compiled: dict[Any, tuple[Any, list[Any]]] = {}


class Round(NamedTuple):
    """What a round leaves behind."""

    part: Float[Tensor, "chunks batch caps_out dim_out"]
    """The weighted sums over chunks of the input capsules."""
    b: Tensor
    """The logits, (batch, caps_out, caps_in); empty in the first round."""
    lse: Tensor
    """Their log-sum-exp over outputs, (batch, caps_in), or over inputs, (batch, caps_out); empty in the first round."""


def _kept(u: Tensor, weight: Tensor, over_outputs: bool, even: bool) -> tuple[Tensor, Tensor]:
    """Makes room for the logits and their log-sum-exp."""
    if even:
        return _empty(u, 0), _empty(u, 0)
    (batch, caps_in, _), caps_out = u.shape, weight.shape[0]
    return _empty(u, batch, caps_out, caps_in), _empty(u, batch, caps_in if over_outputs else caps_out)


def _round(
    plan: Plan,
    how: dict[str, Any],
    u: Tensor,
    compared: Tensor,
    weight: Tensor,
    v: Tensor,
    over_outputs: bool,
    cosine: bool,
    even: bool,
) -> Round:
    """Runs the kernels of one round."""
    batch, _, caps_out, dim_out, _ = plan.sizes
    b, lse = _kept(u, weight, over_outputs, even)
    if over_outputs and not even:
        _launch(
            kernels.log_sums_over_outputs, plan.by_tile, compared, weight, v, b, lse, *plan.extent, COSINE=cosine, **how
        )
    elif not even:
        parts = _empty(u, plan.chunks, batch, caps_out)
        _launch(
            kernels.log_sums_over_inputs, plan.by_chunk, compared, weight, v, b, parts, *plan.extent,
            TILES=plan.tiles, COSINE=cosine, **how,
        )  # fmt: skip
        lse = parts.logsumexp(0)
    part = _empty(u, plan.chunks, batch, caps_out, dim_out)
    _launch(
        kernels.weighted_sums, plan.by_chunk, u, weight, b, lse, v, lse, part, *plan.extent, plan.share(over_outputs),
        TILES=plan.tiles, EVEN=even, SLOPES=False, OVER_OUTPUTS=over_outputs, **how,
    )  # fmt: skip
    return Round(part, b, lse)


def _settle(plan: Plan, part: Tensor, v: Tensor | None, *, direction: bool) -> tuple[Tensor, Tensor]:
    """Gives s, and its squash or direction added to v."""
    s, out = torch.empty_like(part[0]), torch.empty_like(part[0])
    _launch(
        kernels.settle, plan.by_capsule, part, s if v is None else v, s, out, plan.sizes[0] * plan.sizes[2],
        CHUNKS=plan.chunks, O=plan.sizes[3], DO=plan.blocks["DO"], R=CAPSULES, DIRECTION=direction, ADD=v is not None,
    )  # fmt: skip
    return s, out


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
    plan = Plan.of(u, weight)
    how = {**plan.constants, **_precision(u)}
    part, b, lse = _round(plan, how, u, compared, weight, v, over_outputs, cosine, even)
    return part.sum(0), b, lse


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
    plan = Plan.of(u, weight)
    batch, caps_in, caps_out, dim_out, _ = plan.sizes
    how = {**plan.constants, **_precision(u)}
    through = through and not even
    total = lse
    if through and over_outputs:
        total = _empty(u, batch, caps_in)
        _launch(kernels.totals_over_outputs, plan.by_tile, u, weight, b, lse, g, total, *plan.extent, **how)
    elif through:
        total = (g * s).sum(-1)  # sum_i c_ij g_j . W_ij u_i
    du, dw = torch.empty_like(u), torch.empty_like(weight)
    seen, share = (u, weight, v, b, lse, g, total), plan.share(over_outputs)
    flags = {"EVEN": even, "OVER_OUTPUTS": over_outputs, **how}
    _launch(kernels.to_inputs, plan.by_tile, *seen, du, *plan.extent, share, ALL=through, **flags)
    blocks = plan.by_tile[0]
    _launch(kernels.to_weights, plan.by_weight, *seen, dw, *plan.extent, share, BLOCKS=blocks, ALL=through, **flags)
    if not through:
        return du, dw, torch.empty_like(v)  # nobody asks for it
    part = _empty(u, plan.chunks, batch, caps_out, dim_out)
    _launch(
        kernels.weighted_sums, plan.by_chunk, u, weight, b, lse, g, total, part, *plan.extent, share,
        TILES=plan.tiles, SLOPES=True, **flags,
    )  # fmt: skip
    return du, dw, part.sum(0)


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
    return du, None, dw, dv if ctx.choices[-1] else None, None, None, None, None


routed_sum.register_autograd(_gradients, setup_context=_remember)


def _all_rounds(
    u: Tensor, compared: Tensor, weight: Tensor, rounds: int, over_outputs: bool, cosine: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Runs all rounds, with the coefficients of the last held fixed for the gradient.

    Gives ``v = squash(s)``, and what the gradient needs: s, V before the last round, its logits and their log-sum-exp.
    """
    plan = Plan.of(u, weight)
    how = {**plan.constants, **_precision(u)}
    so_far = _empty(u, u.shape[0], weight.shape[0], weight.shape[2])  # the first round does not look at it
    for done in range(rounds - 1):
        part = _round(plan, how, u, compared, weight, so_far, over_outputs, cosine, done == 0).part
        so_far = _settle(plan, part, so_far if done else None, direction=cosine)[1]
    part, b, lse = _round(plan, how, u, compared, weight, so_far, over_outputs, cosine, rounds == 1)
    s, v = _settle(plan, part, None, direction=False)
    return v, s, so_far, b, lse


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
    return *outputs, *_kept(u, weight, over_outputs, rounds == 1)


def _squash_gradient(s: Tensor, g: Tensor) -> Tensor:
    """Gives what reaches s from g, what reaches squash(s)."""
    out, (batch, caps_out, dim_out) = torch.empty_like(s), s.shape
    capsules = batch * caps_out
    grid, padded = (_parts(capsules, CAPSULES),), max(LEAST, _padded(dim_out))
    _launch(kernels.through_squash, grid, s, g, out, capsules, O=dim_out, DO=padded, R=CAPSULES)
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


def _gradients_of_last(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Any, ...]:
    u, weight, s, so_far, b, lse = ctx.saved_tensors
    reaching = through_squash(s, g.contiguous())
    du, dw, _ = routed_sum_gradients(u, weight, so_far, s, b, lse, reaching, ctx.over_outputs, ctx.even, False)
    return du, None, dw, None, None, None


routed.register_autograd(_gradients_of_last, setup_context=_remember_all)


class Routed(torch.autograd.Function):
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
        u, weight, s, so_far, b, lse = ctx.saved_tensors
        reaching = _squash_gradient(s, gradients[0].contiguous())
        du, dw, _ = _sum_gradients(u, weight, so_far, s, b, lse, reaching, ctx.over_outputs, ctx.even, False)
        return du, None, dw, None, None, None


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
        return cast(Tensor, Routed.apply(u, compared, weight, iterations, over_outputs, cosine))
    v = s = u.new_zeros(u.shape[0], weight.shape[0], weight.shape[2], dtype=torch.float32)
    for done in range(iterations):
        s, *_ = routed_sum(u, compared, weight, v, over_outputs, cosine, done == 0, True)
        v = v + (direction(s) if cosine else squash(s))
    return squash(s)
