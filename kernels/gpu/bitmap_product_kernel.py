"""Fused decode and product of a (3, 5, 8) bitmap, batch 1 to 8, on integer tensor cores.

One program multiplies a group of 8 rows; its warps share the supersteps of 4 x 128 columns and the rounds of
the list of level 3. Bytes times digits of x are integers, so their sums do not depend on that split.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.bitmap_expand import code_window, nothing, weight_registers
from kernels.gpu.bitmap_pack import BYTE_OFFSET, PATCH_COLUMNS
from kernels.gpu.primitives import load_shared_input4, popc, stream_words4, warp_scan
from kernels.gpu.tensor_cores import mma

_OFFSET = tl.constexpr(BYTE_OFFSET)
_PATCH_COLUMNS = tl.constexpr(PATCH_COLUMNS)


@triton.jit
def _add_step(
    sums: tl.tuple, registers: tl.tuple, digits: tl.tensor, BATCH: tl.constexpr, ASM: tl.constexpr
) -> Any:
    r = registers
    added = nothing()
    for m in tl.static_range(BATCH):
        b0, b1, b2, b3 = load_shared_input4(digits + m * 128, ASM)
        c0, c1, c2, c3 = sums[m]
        half = mma(r[0], r[1], r[2], r[3], b0, b1, c0, c1, c2, c3, False, ASM)
        c0, c1, c2, c3 = half
        added += (mma(r[4], r[5], r[6], r[7], b2, b3, c0, c1, c2, c3, False, ASM),)
    return added


@triton.jit
def _add_superstep(
    sums: tl.tuple, superstep: tl.tensor, words: tl.tensor, codes: tl.tensor, offsets: tl.tensor,
    digits: tl.tensor, steps: tl.tensor, BATCH: tl.constexpr, TAIL: tl.constexpr, ASM: tl.constexpr,
) -> Any:  # fmt: skip
    """Add a superstep. With TAIL its steps may lie beyond the matrix: unflagged then, and their digits 0."""
    planes = nothing()
    counts = nothing()
    own = superstep * 0
    for s in tl.static_range(4):
        step = superstep * 4 + s
        if TAIL:
            w0, w1, w2, flags = stream_words4(words + tl.minimum(step, steps - 1) * 128, ASM)
            flags = tl.where(step < steps, flags, 0)
        else:
            w0, w1, w2, flags = stream_words4(words + step * 128, ASM)
        planes += ((w0, w1, w2, flags),)
        counts += (popc(flags, ASM),)
        own += counts[s]
    if TAIL:
        offsets += tl.minimum(superstep, (steps - 1) // 4)
    else:
        offsets += superstep
    first = tl.load(offsets) + warp_scan(own, ASM) - own
    for s in tl.static_range(4):
        step = tl.minimum(superstep * 4 + s, steps) if TAIL else superstep * 4 + s
        w0, w1, w2, flags = planes[s]
        registers = weight_registers(w0, w1, w2, flags, code_window(codes, first, ASM), ASM)
        sums = _add_step(sums, registers, digits + step * (BATCH * 128), BATCH, ASM)
        first += counts[s]
    return sums


@triton.jit
def _column_values(gathered: tl.tensor, column: tl.tensor, BATCH: tl.constexpr, ASM: tl.constexpr) -> Any:
    """x of one column for every vector, as tuple of float32 bits."""
    values = nothing()
    if BATCH < 4:
        for m in tl.static_range(BATCH):
            values += (tl.load(gathered + column * BATCH + m),)
    else:
        for m in tl.static_range(BATCH // 4):
            values += load_shared_input4(gathered + column * BATCH + 4 * m, ASM)
    return values


@triton.jit
def _add_patches(
    totals: tl.tuple, patches: tl.tensor, parts: tl.tensor, gathered: tl.tensor, begin: tl.tensor,
    end: tl.tensor, warp: tl.tensor, BATCH: tl.constexpr, WARPS: tl.constexpr, ROUNDS: tl.constexpr,
    ASM: tl.constexpr,
) -> Any:  # fmt: skip
    for first in range(begin, end, WARPS * ROUNDS):
        for u in tl.static_range(ROUNDS):
            at = first + u * WARPS + warp
            word = tl.load(patches + at * 32, mask=at < end, other=0)
            start = tl.load(parts + at, mask=at < end, other=0).to(tl.int32) * _PATCH_COLUMNS
            for half in tl.static_range(2):
                entry = word << (16 - 16 * half)
                j = entry >> 27
                j = (j + (j > 0).to(tl.int32)).to(tl.float32)
                column = start + ((entry >> 16) & (_PATCH_COLUMNS - 1))
                values = _column_values(gathered, column, BATCH, ASM)
                added = nothing()
                for m in tl.static_range(BATCH):
                    added += (totals[m] + j * values[m].to(tl.float32, bitcast=True),)
                totals = added
    return totals


@triton.jit
def _side_by_side(values: tl.tuple, BATCH: tl.constexpr) -> Any:
    """[n, BATCH] from BATCH tensors [n]."""
    SIZE: tl.constexpr = values[0].shape[0]
    if BATCH == 1:
        joined = values[0]
    elif BATCH == 2:
        joined = tl.join(values[0], values[1])
    elif BATCH == 4:
        joined = tl.join(tl.join(values[0], values[2]), tl.join(values[1], values[3]))
    else:
        even = tl.join(tl.join(values[0], values[4]), tl.join(values[2], values[6]))
        joined = tl.join(even, tl.join(tl.join(values[1], values[5]), tl.join(values[3], values[7])))
    return tl.reshape(joined, [SIZE, BATCH])


@triton.jit
def _digit_offsets(
    digit_sums: tl.tensor, chunks: tl.tensor, BATCH: tl.constexpr, CHUNKS: tl.constexpr
) -> Any:
    """What the bytes' offset adds to the sum of every digit: int32 [4, BATCH]."""
    chunk = tl.arange(0, CHUNKS)[:, None, None]
    line = tl.arange(0, BATCH)[None, None, :] * chunks + chunk
    at = digit_sums + line * 4 + tl.arange(0, 4)[None, :, None]
    return tl.sum(tl.load(at, mask=chunk < chunks, other=0), 0) * _OFFSET


@triton.jit
def _store_rows(
    y: tl.tensor, sums: tl.tuple, totals: tl.tuple, x: tl.tuple, rows: tl.tensor, scale: tl.tensor,
    n_out: tl.tensor, scale_stride: tl.tensor, chunks: tl.tensor, USED: tl.constexpr, CHUNKS: tl.constexpr,
    WARPS: tl.constexpr,
) -> None:  # fmt: skip
    _, digit_sums, _, x_scale = x
    BATCH: tl.constexpr = len(totals)
    # Lane 4 g + d holds digit d of row g: the first sum is of one half of the columns, the last of the other.
    own = nothing()
    for m in tl.static_range(BATCH):
        own += (sums[m][0] + sums[m][3],)
    exact = tl.sum(tl.reshape(_side_by_side(own, BATCH), [WARPS, 8, 4, BATCH]), 0)
    exact -= _digit_offsets(digit_sums, chunks, BATCH, CHUNKS)[None, :, :]
    weight = tl.exp2((8 * tl.arange(0, 4)).to(tl.float32))[None, :, None]
    m = tl.arange(0, BATCH)[None, :]
    dense = tl.sum(exact.to(tl.float32) * weight, 1) * tl.load(x_scale + m)
    sparse = tl.sum(tl.sum(tl.reshape(_side_by_side(totals, BATCH), [WARPS, 8, 4, BATCH]), 2), 0)
    row = tl.load(rows + tl.arange(0, 8))[:, None]
    step = tl.load(scale + row * scale_stride, mask=row < n_out, other=0.0)
    tl.store(y + m * n_out + row, (dense + sparse * 8.0) * step, mask=(row < n_out) & (m < USED))


@triton.jit(do_not_specialize=["n_out", "n_in", "scale_stride", "chunks"])
def bitmap_product_kernel(
    y: tl.tensor, planes: tl.tuple, scale: tl.tensor, x: tl.tuple, n_out: tl.tensor, n_in: tl.tensor,
    scale_stride: tl.tensor, chunks: tl.tensor, BATCH: tl.constexpr, USED: tl.constexpr, CHUNKS: tl.constexpr,
    WARPS: tl.constexpr, ROUNDS: tl.constexpr, ASM: tl.constexpr,
) -> None:  # fmt: skip
    """y float32 [USED, n_out] of rows 8 * program .. + 7; see `bitmap_product.bitmap_product`.

    `planes` are the tensors of `BitmapPlanes`, `x` digits, digit_sums, gathered (its bits) and x_scale of
    `Prepared`. Every warp has ROUNDS rounds of patches in flight.
    """
    words, codes, offsets, patches, parts, rounds, rows = planes
    digits, _, gathered, _ = x
    group = tl.program_id(0)
    lane, warp = tl.arange(0, 32 * WARPS) % 32, tl.arange(0, 32 * WARPS) // 32
    steps = tl.cdiv(n_in, 128)
    supersteps = tl.cdiv(steps, 4)
    words += group.to(tl.int64) * steps * 128 + lane * 4
    offsets += group * supersteps
    digits += lane * 4
    sums = nothing()
    totals = nothing()
    for _ in tl.static_range(BATCH):
        sums += ((lane * 0, lane * 0, lane * 0, lane * 0),)
        totals += ((lane * 0).to(tl.float32),)
    shared = steps // 4 // WARPS
    for i in range(shared):
        at = i * WARPS + warp
        sums = _add_superstep(sums, at, words, codes, offsets, digits, steps, BATCH, False, ASM)
    for i in range(shared, tl.cdiv(supersteps, WARPS)):
        at = i * WARPS + warp
        sums = _add_superstep(sums, at, words, codes, offsets, digits, steps, BATCH, True, ASM)
    begin, end = tl.load(rounds + group), tl.load(rounds + group + 1)
    totals = _add_patches(
        totals, patches + lane, parts, gathered, begin, end, warp, BATCH, WARPS, ROUNDS, ASM
    )
    _store_rows(y, sums, totals, x, rows + group * 8, scale, n_out, scale_stride, chunks, USED, CHUNKS, WARPS)
