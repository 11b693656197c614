"""Kernel of `embedding.embed_token`."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.gpu.chaining import follow
from kernels.gpu.sampling import state

_FIRST = tl.constexpr(state.FIRST)


@triton.jit
def _mark_seen(
    seen: tl.tensor, settings: tl.tensor, token: tl.tensor, position: tl.tensor, mine: tl.tensor
) -> None:
    """Note a token of the answer: at the start of its own step, so that a step can be run again."""
    if mine & (tl.load(position) >= tl.load(settings + _FIRST)):
        tl.store(seen + token, 1)


@triton.jit(do_not_specialize=("vocab", "factor"))
def embed_kernel(
    codes: tl.tensor,
    scale: tl.tensor,
    inverse_columns: tl.tensor,
    position: tl.tensor,
    token: tl.tensor,
    seen: tl.tensor,
    settings: tl.tensor,
    stream: tl.tensor,
    vocab: tl.tensor,
    hidden: tl.tensor,
    factor: tl.tensor,
    COLUMNS: tl.constexpr,
    SEEN: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """BLOCK values of the row a program. An id outside the table takes the nearest row."""
    follow(CHAINED)
    row = tl.minimum(tl.maximum(tl.load(token), 0), vocab - 1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < hidden
    values = tl.load(codes + row.to(tl.int64) * hidden + at, mask=inside, other=0).to(tl.float32)
    values *= tl.load(scale + row)
    if COLUMNS:
        values *= tl.load(inverse_columns + at, mask=inside, other=0.0)
    tl.store(stream + at, values * factor, mask=inside)
    if SEEN:
        _mark_seen(seen, settings, row, position, tl.program_id(0) == 0)
