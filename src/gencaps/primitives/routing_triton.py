"""Triton kernels of routing by agreement that never write the votes down.

Everything is done tile by tile: ``BB`` pictures by ``IB`` input capsules by one output capsule j, or two. With
``V_j = sum of v_j so far`` the logits come without those of the round before,

    b_bij = sum of agreements = V_bj . W_ij u_bi = u_bi . (W_ij^T V_bj),

so a tile of them is one matrix product ``V_j W_j`` (inner size dim_out), times u, summed over dim_in; and a tile of
``s_j = sum_i c_ij W_ij u_i`` is one matrix product ``(c u) W_j^T`` (inner size IB dim_in) whose left side is formed in
registers. Coefficients come back from the logits, a number for dim_out of a vote's, and their log-sum-exp.

Sums over input capsules are made in chunks that are added up afterwards, always in the same order: no atomics, so two
runs agree bit for bit. Sizes need not be powers of two: tiles are padded with zeros.

Layouts: u (batch, caps_in, dim_in), W (caps_out, caps_in, dim_out, dim_in), v, s, g (batch, caps_out, dim_out), b
(batch, caps_out, caps_in). Batch and number of input capsules are told, not compiled for; how many tiles they make is.
"""

from __future__ import annotations

import triton  # pyright: ignore[reportMissingImports] (an extra)
import triton.language as tl  # pyright: ignore[reportMissingImports]

OF_ANY_SIZE = triton.jit(do_not_specialize=["B", "I", "N"])


@triton.jit
def _load_inputs(ptr, rows, i, d, B, I, D: tl.constexpr):
    """Loads a tile of input capsules, (BB, IB DI)."""
    at = (rows[:, None].to(tl.int64) * I + i[None, :]) * D + d[None, :]
    return tl.load(ptr + at, mask=(rows < B)[:, None] & ((i < I) & (d < D))[None, :], other=0.0)


@triton.jit
def _load_weights(ptr, j, o, i, d, I, O: tl.constexpr, D: tl.constexpr):
    """Loads W_j of a tile of input capsules, (DO, IB DI)."""
    at = ((i[None, :].to(tl.int64) + j * I) * O + o[:, None]) * D + d[None, :]
    return tl.load(ptr + at, mask=(o < O)[:, None] & ((i < I) & (d < D))[None, :], other=0.0)


@triton.jit
def _load_outputs(ptr, rows, j, o, B, J: tl.constexpr, O: tl.constexpr):
    """Loads one output capsule of a block of pictures, (BB, DO)."""
    at = (rows[:, None].to(tl.int64) * J + j) * O + o[None, :]
    return tl.load(ptr + at, mask=(rows < B)[:, None] & (o < O)[None, :], other=0.0)


@triton.jit
def dot(x, y, PREC: tl.constexpr, HALF: tl.constexpr):
    """Multiplies two matrices, adding up in float32."""
    if HALF:
        return tl.dot(x.to(tl.bfloat16), y.to(tl.bfloat16))
    return tl.dot(x.to(tl.float32), y.to(tl.float32), input_precision=PREC)


@triton.jit
def over_dim(t, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr):
    """Adds a tile up over the dimension: (BB, IB DI) to (BB, IB)."""
    return tl.sum(tl.reshape(t, (BB, IB, DI)), 2)


@triton.jit
def along_dim(c, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr):
    """Repeats a tile along the dimension: (BB, IB) to (BB, IB DI)."""
    return tl.reshape(tl.broadcast_to(c[:, :, None], (BB, IB, DI)), (BB, IB * DI))


@triton.jit
def _vote_lengths(
    w_ptr, a, j, i, d, I,
    O: tl.constexpr, D: tl.constexpr, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr,
):  # fmt: skip
    """Measures the votes W_ij a_i, one number of theirs at a time, (BB, IB)."""
    squares = tl.zeros((BB, IB), tl.float32)
    for o in range(O):
        at = ((i.to(tl.int64) + j * I) * O + o) * D + d
        row = tl.load(w_ptr + at, mask=(i < I) & (d < D), other=0.0).to(tl.float32)
        vote = over_dim(a.to(tl.float32) * row[None, :], BB, IB, DI)
        squares += vote * vote
    return tl.sqrt(squares)


@triton.jit
def _logits(
    v, w, a, w_ptr, j, i, d, I, O: tl.constexpr, D: tl.constexpr,
    COSINE: tl.constexpr, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives V_j . W_ij a_i, (BB, IB); for the cosine over the length of the vote."""
    b = over_dim(dot(v, w, PREC, HALF) * a.to(tl.float32), BB, IB, DI)
    if COSINE:
        b = b / tl.maximum(_vote_lengths(w_ptr, a, j, i, d, I, O, D, BB, IB, DI), 1.1920929e-07)
    return b


@triton.jit
def _store_logits(b, b_ptr, rows, inputs, j, B, I, J):
    """Keeps a tile of logits, (BB, IB)."""
    at = (rows[:, None].to(tl.int64) * J + j) * I + inputs[None, :]
    tl.store(b_ptr + at, b, mask=(rows < B)[:, None] & (inputs < I)[None, :])


@OF_ANY_SIZE
def log_sums_over_outputs(
    a_ptr, w_ptr, v_ptr, b_ptr, lse_ptr, B, I,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr,
    COSINE: tl.constexpr, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr,
    PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives the logits of a tile and their ``log sum_j exp b_bij``, running over the output capsules."""
    rows, o = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, DO)
    k = tl.arange(0, IB * DI)
    i, d = tl.program_id(1) * IB + k // DI, k % DI
    a = _load_inputs(a_ptr, rows, i, d, B, I, D)
    most = tl.full((BB, IB), float("-inf"), tl.float32)
    total = tl.zeros((BB, IB), tl.float32)
    inputs = tl.program_id(1) * IB + tl.arange(0, IB)
    for j in range(J):
        w = _load_weights(w_ptr, j, o, i, d, I, O, D)
        v = _load_outputs(v_ptr, rows, j, o, B, J, O)
        b = _logits(v, w, a, w_ptr, j, i, d, I, O, D, COSINE, BB, IB, DI, PREC, HALF)
        _store_logits(b, b_ptr, rows, inputs, j, B, I, J)
        higher = tl.maximum(most, b)
        total = total * tl.exp(most - higher) + tl.exp(b - higher)
        most = higher
    at = rows[:, None].to(tl.int64) * I + inputs[None, :]
    tl.store(lse_ptr + at, most + tl.log(total), mask=(rows < B)[:, None] & (inputs < I)[None, :])


@OF_ANY_SIZE
def log_sums_over_inputs(
    a_ptr, w_ptr, v_ptr, b_ptr, part_ptr, B, I,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr, TILES: tl.constexpr,
    COSINE: tl.constexpr, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr,
    PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives the logits, and ``log sum_i exp b_bij`` over one chunk of the input capsules, (chunks, batch, caps_out)."""
    rows, o = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, DO)
    j, chunk = tl.program_id(1), tl.program_id(2)
    k = tl.arange(0, IB * DI)
    v = _load_outputs(v_ptr, rows, j, o, B, J, O)
    most = tl.full((BB,), float("-inf"), tl.float32)
    total = tl.zeros((BB,), tl.float32)
    for step in range(TILES):
        tile = chunk * TILES + step
        i, d = tile * IB + k // DI, k % DI
        inputs = tile * IB + tl.arange(0, IB)
        a = _load_inputs(a_ptr, rows, i, d, B, I, D)
        w = _load_weights(w_ptr, j, o, i, d, I, O, D)
        b = _logits(v, w, a, w_ptr, j, i, d, I, O, D, COSINE, BB, IB, DI, PREC, HALF)
        _store_logits(b, b_ptr, rows, inputs, j, B, I, J)
        b = tl.where((inputs < I)[None, :], b, float("-inf"))
        higher = tl.maximum(most, tl.max(b, 1))
        # a tile of padding alone leaves -inf where it is: -inf - -inf is no number
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(most - base) + tl.sum(tl.exp(b - base[:, None]), 1)
        most = higher
    at = (chunk * B + rows.to(tl.int64)) * J + j
    tl.store(part_ptr + at, tl.where(total > 0, most + tl.log(total), float("-inf")), mask=rows < B)


@triton.jit
def _coefficients(
    b_ptr, lse_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS: tl.constexpr,
):  # fmt: skip
    """Gives ``c_bij = exp(b_bij - log sum exp b)``, (BB, IB); 0 in the padding."""
    there = (rows < B)[:, None] & (inputs < I)[None, :]
    at = (rows[:, None].to(tl.int64) * J + j) * I + inputs[None, :]
    b = tl.load(b_ptr + at, mask=there, other=0.0)
    if OVER_OUTPUTS:
        lse = tl.load(lse_ptr + rows[:, None].to(tl.int64) * I + inputs[None, :], mask=there, other=0.0)
        return tl.where(there, tl.exp(b - lse), 0.0)
    lse = tl.load(lse_ptr + rows.to(tl.int64) * J + j, mask=rows < B, other=0.0)
    return tl.where(there, tl.exp(b - lse[:, None]), 0.0)


@triton.jit
def _slopes(
    c, gw, u, total_ptr, rows, inputs, j, B, I, J,
    OVER_OUTPUTS: tl.constexpr, BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr,
):  # fmt: skip
    """Gives the gradient that reaches the logits through the softmax, ``c (g . W u - sum c g . W u)``, (BB, IB)."""
    reach = over_dim(gw * u.to(tl.float32), BB, IB, DI)
    if OVER_OUTPUTS:
        there = (rows < B)[:, None] & (inputs < I)[None, :]
        total = tl.load(total_ptr + rows[:, None].to(tl.int64) * I + inputs[None, :], mask=there, other=0.0)
        return c * (reach - total)
    total = tl.load(total_ptr + rows.to(tl.int64) * J + j, mask=rows < B, other=0.0)
    return c * (reach - total[:, None])


@triton.jit
def _sum_of_tile(
    u, w_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, rows, inputs, i, d, o, j, B, I,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr,
    SLOPES: tl.constexpr, OVER_OUTPUTS: tl.constexpr,
    BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives the weighted sum of a tile's votes for one output capsule, (BB, DO)."""
    w = _load_weights(w_ptr, j, o, i, d, I, O, D)
    c = _coefficients(b_ptr, lse_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS)
    if SLOPES:
        g = _load_outputs(g_ptr, rows, j, o, B, J, O)
        c = _slopes(c, dot(g, w, PREC, HALF), u, total_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS, BB, IB, DI)
    return dot(along_dim(c, BB, IB, DI) * u.to(tl.float32), tl.trans(w), PREC, HALF)


@OF_ANY_SIZE
def weighted_sums(
    u_ptr, w_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, part_ptr, B, I,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr, TILES: tl.constexpr,
    SLOPES: tl.constexpr, OVER_OUTPUTS: tl.constexpr, PAIR: tl.constexpr,
    BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives ``sum_i c_ij W_ij u_i`` over one chunk of the input capsules, (chunks, batch, caps_out, dim_out).

    With ``SLOPES`` the sum is weighted by the gradient that reaches the logits instead,
    ``c_ij (g_j . W_ij u_i - total)``, which makes it the gradient that reaches V. With ``PAIR`` a program does two
    output capsules, so that u, which is what it mostly waits for, is read half as often.
    """
    rows, o = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, DO)
    chunk, k = tl.program_id(2), tl.arange(0, IB * DI)
    j = tl.program_id(1) * (2 if PAIR else 1)
    beside = tl.minimum(j + 1, J - 1)
    s, t = tl.zeros((BB, DO), tl.float32), tl.zeros((BB, DO), tl.float32)
    for step in range(TILES):
        tile = chunk * TILES + step
        i, d = tile * IB + k // DI, k % DI
        inputs = tile * IB + tl.arange(0, IB)
        u = _load_inputs(u_ptr, rows, i, d, B, I, D)
        s += _sum_of_tile(
            u, w_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, rows, inputs, i, d, o, j, B, I,
            J, O, D, SLOPES, OVER_OUTPUTS, BB, IB, DI, PREC, HALF,
        )  # fmt: skip
        if PAIR:
            t += _sum_of_tile(
                u, w_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, rows, inputs, i, d, o, beside, B, I,
                J, O, D, SLOPES, OVER_OUTPUTS, BB, IB, DI, PREC, HALF,
            )  # fmt: skip
    at = ((chunk * B + rows[:, None].to(tl.int64)) * J + j) * O + o[None, :]
    there = (rows < B)[:, None] & (o < O)[None, :]
    tl.store(part_ptr + at, s, mask=there)
    if PAIR:
        tl.store(part_ptr + at + O, t, mask=there & (j + 1 < J))


@OF_ANY_SIZE
def totals_over_outputs(
    u_ptr, w_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, B, I,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr,
    BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr,
    PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives ``sum_j c_ij g_j . W_ij u_i`` of a tile: what the softmax over outputs takes off every slope."""
    rows, o = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, DO)
    k = tl.arange(0, IB * DI)
    i, d = tl.program_id(1) * IB + k // DI, k % DI
    inputs = tl.program_id(1) * IB + tl.arange(0, IB)
    u = _load_inputs(u_ptr, rows, i, d, B, I, D)
    total = tl.zeros((BB, IB), tl.float32)
    for j in range(J):
        w = _load_weights(w_ptr, j, o, i, d, I, O, D)
        g = _load_outputs(g_ptr, rows, j, o, B, J, O)
        c = _coefficients(b_ptr, lse_ptr, rows, inputs, j, B, I, J, True)
        total += c * over_dim(dot(g, w, PREC, HALF) * u.to(tl.float32), BB, IB, DI)
    at = rows[:, None].to(tl.int64) * I + inputs[None, :]
    tl.store(total_ptr + at, total, mask=(rows < B)[:, None] & (inputs < I)[None, :])


@OF_ANY_SIZE
def to_inputs(
    u_ptr, w_ptr, v_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, du_ptr, B, I, SHARE,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr,
    EVEN: tl.constexpr, ALL: tl.constexpr, OVER_OUTPUTS: tl.constexpr,
    BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives the gradient that reaches u: ``sum_j c_ij W_ij^T g_j``, and with ``ALL`` what comes through the logits."""
    rows, o = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, DO)
    k = tl.arange(0, IB * DI)
    i, d = tl.program_id(1) * IB + k // DI, k % DI
    inputs = tl.program_id(1) * IB + tl.arange(0, IB)
    du = tl.zeros((BB, IB * DI), tl.float32)
    for j in range(J):
        w = _load_weights(w_ptr, j, o, i, d, I, O, D)
        gw = dot(_load_outputs(g_ptr, rows, j, o, B, J, O), w, PREC, HALF)
        if EVEN:
            du += SHARE * gw
        else:
            c = _coefficients(b_ptr, lse_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS)
            du += along_dim(c, BB, IB, DI) * gw
            if ALL:
                u = _load_inputs(u_ptr, rows, i, d, B, I, D)
                v = _load_outputs(v_ptr, rows, j, o, B, J, O)
                slope = _slopes(c, gw, u, total_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS, BB, IB, DI)
                du += along_dim(slope, BB, IB, DI) * dot(v, w, PREC, HALF)
    at = (rows[:, None].to(tl.int64) * I + i[None, :]) * D + d[None, :]
    tl.store(du_ptr + at, du, mask=(rows < B)[:, None] & ((i < I) & (d < D))[None, :])


@triton.jit
def _weights_of_block(
    u, w_ptr, v_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, rows, inputs, i, d, o, j, B, I, SHARE,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr,
    EVEN: tl.constexpr, ALL: tl.constexpr, OVER_OUTPUTS: tl.constexpr,
    BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives what some pictures send to W_j of a tile, (DO, IB DI)."""
    g = _load_outputs(g_ptr, rows, j, o, B, J, O)
    if EVEN:
        return dot(tl.trans(g), SHARE * u.to(tl.float32), PREC, HALF)
    c = _coefficients(b_ptr, lse_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS)
    dw = dot(tl.trans(g), along_dim(c, BB, IB, DI) * u.to(tl.float32), PREC, HALF)
    if ALL:
        w = _load_weights(w_ptr, j, o, i, d, I, O, D)
        v = _load_outputs(v_ptr, rows, j, o, B, J, O)
        gw = dot(g, w, PREC, HALF)
        slope = _slopes(c, gw, u, total_ptr, rows, inputs, j, B, I, J, OVER_OUTPUTS, BB, IB, DI)
        dw += dot(tl.trans(v), along_dim(slope, BB, IB, DI) * u.to(tl.float32), PREC, HALF)
    return dw


@OF_ANY_SIZE
def to_weights(
    u_ptr, w_ptr, v_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, dw_ptr, B, I, SHARE,
    J: tl.constexpr, O: tl.constexpr, D: tl.constexpr, BLOCKS: tl.constexpr,
    EVEN: tl.constexpr, ALL: tl.constexpr, OVER_OUTPUTS: tl.constexpr, PAIR: tl.constexpr,
    BB: tl.constexpr, IB: tl.constexpr, DI: tl.constexpr, DO: tl.constexpr, PREC: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gives the gradient that reaches W_j: ``sum_b c_bij g_bj u_bi^T``, and with ``ALL`` what the logits pass on.

    With ``PAIR`` a program does two output capsules, as in ``weighted_sums``.
    """
    o, k = tl.arange(0, DO), tl.arange(0, IB * DI)
    j = tl.program_id(0) * (2 if PAIR else 1)
    beside = tl.minimum(j + 1, J - 1)
    i, d = tl.program_id(1) * IB + k // DI, k % DI
    inputs = tl.program_id(1) * IB + tl.arange(0, IB)
    dw, dx = tl.zeros((DO, IB * DI), tl.float32), tl.zeros((DO, IB * DI), tl.float32)
    for block in range(BLOCKS):
        rows = block * BB + tl.arange(0, BB)
        u = _load_inputs(u_ptr, rows, i, d, B, I, D)
        dw += _weights_of_block(
            u, w_ptr, v_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, rows, inputs, i, d, o, j, B, I, SHARE,
            J, O, D, EVEN, ALL, OVER_OUTPUTS, BB, IB, DI, PREC, HALF,
        )  # fmt: skip
        if PAIR:
            dx += _weights_of_block(
                u, w_ptr, v_ptr, b_ptr, lse_ptr, g_ptr, total_ptr, rows, inputs, i, d, o, beside, B, I, SHARE,
                J, O, D, EVEN, ALL, OVER_OUTPUTS, BB, IB, DI, PREC, HALF,
            )  # fmt: skip
    at = ((i[None, :].to(tl.int64) + j * I) * O + o[:, None]) * D + d[None, :]
    there = (o < O)[:, None] & ((i < I) & (d < D))[None, :]
    tl.store(dw_ptr + at, dw, mask=there)
    if PAIR:
        tl.store(dw_ptr + at + I * O * D, dx, mask=there & (j + 1 < J))


@OF_ANY_SIZE
def settle(
    part_ptr, v_ptr, s_ptr, out_ptr, N,
    CHUNKS: tl.constexpr, O: tl.constexpr, DO: tl.constexpr, R: tl.constexpr,
    DIRECTION: tl.constexpr, ADD: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Adds the chunks up to s and gives its squash, (Sabour et al., 2017), Eq. (1), or its direction; added to V."""
    rows, o = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, DO)
    at = rows[:, None].to(tl.int64) * O + o[None, :]
    there = (rows < N)[:, None] & (o < O)[None, :]
    s = tl.zeros((R, DO), tl.float32)
    for chunk in tl.range(CHUNKS, loop_unroll_factor=8):  # else each would wait for the one before to arrive
        s += tl.load(part_ptr + at + chunk * N * O, mask=there, other=0.0)
    if KEEP:
        tl.store(s_ptr + at, s, mask=there)
    # scaled by the largest number, so that no square leaves the number range
    largest = tl.max(tl.abs(s), 1)
    scale = tl.where(largest > 0, largest, 1.0)
    scaled = s / scale[:, None]
    n = scale * tl.sqrt(tl.sum(scaled * scaled, 1))
    if DIRECTION:
        factor = 1 / tl.maximum(n, 1.1920929e-07)
    else:
        r = tl.where(n > 1, 1 / tl.maximum(n, 1.0), n)  # n / (1 + n^2) is the same for n and 1 / n
        factor = r / (1 + r * r)
    out = s * factor[:, None]
    if ADD:
        out += tl.load(v_ptr + at, mask=there, other=0.0)
    tl.store(out_ptr + at, out, mask=there)


@OF_ANY_SIZE
def through_squash(
    s_ptr, g_ptr, out_ptr, N,
    O: tl.constexpr, DO: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Gives what reaches s from what reaches squash(s) = f(n) s: ``f g + (f' / n) (g . s) s``, f = n / (1 + n^2)."""
    rows, o = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, DO)
    at = rows[:, None].to(tl.int64) * O + o[None, :]
    there = (rows < N)[:, None] & (o < O)[None, :]
    s = tl.load(s_ptr + at, mask=there, other=0.0)
    g = tl.load(g_ptr + at, mask=there, other=0.0)
    largest = tl.max(tl.abs(s), 1)
    scale = tl.where(largest > 0, largest, 1.0)
    scaled = s / scale[:, None]
    norm = tl.sqrt(tl.sum(scaled * scaled, 1))
    n = scale * norm
    r = tl.where(n > 1, 1 / tl.maximum(n, 1.0), n)
    f = r / (1 + r * r)
    # f' n = f (1 - n^2) / (1 + n^2), which changes its sign alone between n and 1 / n
    turn = (1 - r * r) / (1 + r * r)
    slope = f * tl.where(n > 1, -turn, turn)
    unit = scaled / tl.where(norm > 0, norm, 1.0)[:, None]
    along = tl.sum(g * unit, 1)
    tl.store(out_ptr + at, f[:, None] * g + (slope * along)[:, None] * unit, mask=there)
