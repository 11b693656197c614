"""Adding residual rows to decoded weights: rows lie by input channel, weights by output.

A lane has 8 channels of 8 outputs: a word of each channel's row, and of each output's row of the panel 16
bytes. So it transposes them in its own registers.
"""

# Triton's tuples grow by `+` alone.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from kernels.gpu.conversions import as_type, bf16_pair
from kernels.gpu.primitives import store_words4


@triton.jit
def _load_words4(pointers: tl.tensor, mask: tl.tensor) -> Any:
    """Four consecutive words, 16-byte aligned, where `mask` (int32) is not 0; elsewhere 0."""
    return tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.s32 p,$5,0; mov.u32 $0,0; mov.u32 $1,0; mov.u32 $2,0; mov.u32 $3,0;"
        " @p ld.global.v4.u32 {$0,$1,$2,$3},[$4]; }",
        "=&r,=&r,=&r,=&r,l,r",
        [pointers, mask],
        dtype=(tl.uint32, tl.uint32, tl.uint32, tl.uint32),
        is_pure=False,
        pack=1,
    )


@triton.jit
def _halves(word: tl.tensor) -> Any:
    """The two bf16 values of a word, float32."""
    return (word << 16).to(tl.float32, bitcast=True), (word & 0xFFFF0000).to(tl.float32, bitcast=True)


@triton.jit
def _nibble(word: tl.tensor, OUTPUT: tl.constexpr) -> tl.tensor:
    """Nibble OUTPUT of words whose nibbles are 8 more than they mean, float32."""
    raised = (((word >> (4 * OUTPUT)) & 15) | 0x4B000000).to(tl.float32, bitcast=True)
    return raised - 8388616.0


@triton.jit
def _add_vectors(
    target: tl.tensor, stride: tl.tensor, words: tl.tuple, scales: tl.tuple, inside: tl.tuple
) -> None:
    """Add 8 channels to 8 outputs, whose rows lie `stride` values apart; reads come before writes."""
    before = ()
    for r in tl.static_range(8):
        row = (target + r * stride).to(tl.pointer_type(tl.uint32), bitcast=True)
        before = before + (_load_words4(row, inside[r].to(tl.int32)),)
    for r in tl.static_range(8):
        after = ()
        for i in tl.static_range(4):
            low, high = _halves(before[r][i])
            low += _nibble(words[2 * i], r) * scales[r]
            high += _nibble(words[2 * i + 1], r) * scales[r]
            after = after + (bf16_pair(low, high, True),)
        row = (target + r * stride).to(tl.pointer_type(tl.uint32), bitcast=True)
        store_words4(row, after[0], after[1], after[2], after[3], inside[r].to(tl.int32), True)


@triton.jit
def _add_values(
    target: tl.tensor,
    stride: tl.tensor,
    words: tl.tuple,
    scales: tl.tuple,
    inside: tl.tuple,
    left: tl.tensor,
    ASM: tl.constexpr,
) -> None:
    """As `_add_vectors`, value by value; the lane has `left` channels."""
    for r in tl.static_range(8):
        for j in tl.static_range(8):
            at = target + r * stride + j
            mask = inside[r] & (j < left)
            value = tl.load(at, mask=mask, other=0.0).to(tl.float32) + _nibble(words[j], r) * scales[r]
            tl.store(at, as_type(value, tl.bfloat16, ASM), mask=mask)


@triton.jit(do_not_specialize=("rows", "columns", "tiles", "stride", "row_words"))
def add_residual_kernel(
    panel: tl.tensor,
    residual: tl.tensor,
    scale: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    tiles: tl.tensor,
    stride: tl.tensor,
    row_words: tl.tensor,
    VECTOR: tl.constexpr,
    WARPS: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """panel[row, column] += scale[row] * nibble[column, row]; see `residual_decode.add_residual`.

    A warp has a tile of 64 outputs of 32 channels, and next to it in the same outputs lie `tiles`. VECTOR:
    columns are whole parts of 8 at aligned addresses.
    """
    thread = tl.arange(0, 32 * WARPS)
    tile = tl.program_id(0) * WARPS + thread // 32
    channel = tile % tiles * 32 + thread % 4 * 8
    word = tile // tiles * 8 + thread % 32 // 4
    words = ()
    for j in tl.static_range(8):
        at = residual + (channel + j).to(tl.int64) * row_words + word
        loaded = tl.load(at, mask=(channel + j < columns) & (word * 8 < rows), other=0)
        words = words + (loaded.to(tl.uint32, bitcast=True) ^ 0x88888888,)
    scales = ()
    inside = ()
    for r in tl.static_range(8):
        exists = word * 8 + r < rows
        inside = inside + (exists & (channel < columns),)
        scales = scales + (tl.load(scale + word * 8 + r, mask=exists, other=0.0),)
    target = panel + word.to(tl.int64) * 8 * stride + channel
    if VECTOR and ASM:
        _add_vectors(target, stride, words, scales, inside)
    else:
        _add_values(target, stride, words, scales, inside, columns - channel, ASM)
