"""Fused decode and product straight from nested bitmaps, any levels: one program, one output row.

Rows need not start at a block: a row's program decodes every block it touches and uses its own part. Each
output is summed by one program in a fixed order, so results repeat bit for bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.bitmap_decode import block_values
from kernels.gpu.bitmap_matrix import BitmapMatrix
from kernels.int8x.levels import BLOCK

MAX_BATCH = 8

_BLOCK = tl.constexpr(BLOCK)


@triton.jit
def _row_product(
    y: tl.tensor, x: tl.tensor, scale: tl.tensor, bitmaps: tl.tuple, tables: tl.tuple, codes: tl.tuple,
    n: tl.tensor, n_in: tl.tensor, stride: tl.tensor, batch: tl.tensor,
    LEVELS: tl.constexpr, BATCH: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    start = row * n_in
    token = tl.arange(0, BATCH)
    total = tl.zeros([BATCH, _BLOCK], tl.float32)
    for block in range(start // _BLOCK, (start + n_in - 1) // _BLOCK + 1):
        weight = block_values(bitmaps, tables, codes, block, n, LEVELS).to(tl.float32)
        column = block * _BLOCK - start + tl.arange(0, _BLOCK)
        inside = (column >= 0) & (column < n_in)
        wanted = (token < batch)[:, None] & inside[None, :]
        values = tl.load(x + token[:, None] * n_in + column[None, :], mask=wanted, other=0.0)
        total += values.to(tl.float32) * weight[None, :]
    result = tl.sum(total, 1) * tl.load(scale + row * stride)
    tl.store(y + token * tl.num_programs(0) + row, result, mask=token < batch)


def bitmap_product_streams(matrix: BitmapMatrix, x: torch.Tensor) -> torch.Tensor:
    """x [M, n_in] (M 1 to 8, float32 or bfloat16) times the matrix, transposed: float32 [M, n_out].

    Accumulates in float32. ValueError for a batch or a width that does not fit.
    """
    batch = x.shape[0]
    if x.dim() != 2 or x.shape[1] != matrix.n_in or not 1 <= batch <= MAX_BATCH:
        raise ValueError(f"x {list(x.shape)} is not [1 to {MAX_BATCH}, {matrix.n_in}]")
    y = torch.empty(batch, matrix.n_out, dtype=torch.float32, device=x.device)
    streams = matrix.streams
    _row_product[(matrix.n_out,)](
        y, x.contiguous(), matrix.scale, streams.bitmaps, streams.block_counts, streams.codes, streams.n,
        matrix.n_in, matrix.scale_stride, batch, streams.levels, triton.next_power_of_2(batch), num_warps=4,
    )  # fmt: skip
    return y
