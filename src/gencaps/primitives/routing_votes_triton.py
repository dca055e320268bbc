"""Triton kernels of routing by agreement that do all output capsules at once, so that u is read once.

The even round needs no votes: it is one matrix product over all input capsules. The later ones, where the votes of one
input capsule for all output capsules fit into registers, make them, compare them, weigh them and forget them. Both sum
over chunks of the input capsules that are added up afterwards; layouts are those of ``routing_triton``.
"""

from __future__ import annotations

import triton  # pyright: ignore[reportMissingImports] (an extra)
import triton.language as tl  # pyright: ignore[reportMissingImports]

from gencaps.primitives.routing_triton import OF_ANY_SIZE, along_dim, dot, over_dim


@OF_ANY_SIZE
def even_sums(
    u_ptr, w_ptr, part_ptr, B, I, SHARE,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr, TILES: tl.constexpr,
    BB: tl.constexpr, KB: tl.constexpr, NB: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives ``SHARE sum_i W_ij u_i`` over one chunk of the input capsules' numbers, (chunks, batch, caps_out, dim_out).

    One matrix product of inner size caps_in dim_in: columns n are the numbers of all output capsules in a row.
    """
    rows, n = tl.program_id(0) * BB + tl.arange(0, BB), tl.program_id(1) * NB + tl.arange(0, NB)
    chunk, j, o = tl.program_id(2), n // O, n % O
    u_rows = u_ptr + rows[:, None].to(tl.int64) * I * D
    w_columns = w_ptr + (j[None, :].to(tl.int64) * I * O + o[None, :]) * D
    s = tl.zeros((BB, NB), tl.float32)
    for step in range(TILES):
        k = (chunk * TILES + step) * KB + tl.arange(0, KB)
        there = k < I * D
        u = tl.load(u_rows + k[None, :], mask=(rows < B)[:, None] & there[None, :], other=0.0)
        at = (k // D) * (O * D) + k % D
        w = tl.load(w_columns + at[:, None], mask=there[:, None] & (j < J)[None, :], other=0.0)
        s += dot(u, w, PREC, HALF)
    at = (chunk * B + rows[:, None].to(tl.int64)) * (J * O) + n[None, :]
    tl.store(part_ptr + at, s * SHARE, mask=(rows < B)[:, None] & (j < J)[None, :])


@triton.jit
def _votes(
    u, w_ptr, j, o, d, I, more,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives the votes of one input capsule for some output capsules, (BB, SOME DO); w_ptr is at that input capsule."""
    at = ((j.to(tl.int64) * I * O + o) * D)[None, :] + d[:, None]
    there = ((j < J) & (o < O))[None, :] & (d < D)[:, None]
    return dot(u, tl.load(w_ptr + at, mask=there & more, other=0.0), PREC, HALF)


@OF_ANY_SIZE
def round_of_votes(
    u_ptr, w_ptr, v_ptr, part_ptr, B, I,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr, COUNT: tl.constexpr,
    BB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr, MOST: tl.constexpr, REST: tl.constexpr,
    PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives ``sum_i c_ij W_ij u_i`` over one chunk of the input capsules, (chunks, batch, caps_out, dim_out).

    Here ``c_i = softmax_j(V_j . W_ij u_i)``, (Sabour et al., 2017), Eqs. (2) and (3). The output capsules are held as
    two powers of two, MOST and REST, which wastes less than one: 10 are 8 and 2, not 16.
    """
    rows, d = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, DI)
    chunk, n = tl.program_id(2), tl.arange(0, MOST * DO)
    first, j, o = chunk * COUNT, n // DO, n % DO
    u_at = rows[:, None].to(tl.int64) * I * D + d[None, :]
    u_there = (rows < B)[:, None] & (d < D)[None, :]
    v_at = rows[:, None].to(tl.int64) * (J * O) + (j * O + o)[None, :]
    v_there = (rows < B)[:, None] & (o < O)[None, :]
    # logits to the base 2, since that is the exponential which a GPU has
    v = tl.load(v_ptr + v_at, mask=v_there, other=0.0) * 1.4426950408889634
    s = tl.zeros((BB, MOST * DO), tl.float32)
    if REST:
        m = tl.arange(0, REST * DO)
        k, p = MOST + m // DO, m % DO
        x_at = rows[:, None].to(tl.int64) * (J * O) + (k * O + p)[None, :]
        x_there = (rows < B)[:, None] & ((k < J) & (p < O))[None, :]
        x = tl.load(v_ptr + x_at, mask=x_there, other=0.0) * 1.4426950408889634
        t = tl.zeros((BB, REST * DO), tl.float32)
    u_ptr += first.to(tl.int64) * D
    w_ptr += first.to(tl.int64) * (O * D)
    for step in range(COUNT):
        more = first + step < I
        u = tl.load(u_ptr + u_at, mask=u_there & more, other=0.0)
        votes = _votes(u, w_ptr, j, o, d, I, more, J, O, D, PREC, HALF)
        if REST:
            beside = _votes(u, w_ptr, k, p, d, I, more, J, O, D, PREC, HALF)
        b = over_dim(votes * v, BB, MOST, DO)
        highest = tl.max(b, 1)
        if REST:
            e = over_dim(beside * x, BB, REST, DO)
            if MOST + REST > J:
                e = tl.where((MOST + tl.arange(0, REST) < J)[None, :], e, float("-inf"))
            highest = tl.maximum(highest, tl.max(e, 1))
        b = tl.exp2(b - highest[:, None])
        total = tl.sum(b, 1)
        if REST:
            e = tl.exp2(e - highest[:, None])
            total += tl.sum(e, 1)
        scale = 1 / total[:, None]
        s += along_dim(b * scale, BB, MOST, DO) * votes
        if REST:
            t += along_dim(e * scale, BB, REST, DO) * beside
        u_ptr += D
        w_ptr += O * D
    part_ptr += chunk.to(tl.int64) * B * (J * O)
    tl.store(part_ptr + v_at, s, mask=v_there)
    if REST:
        tl.store(part_ptr + x_at, t, mask=x_there)
