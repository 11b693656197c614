"""Adding residual rows to decoded weights, so that one product of many vectors has base and correction."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import WORD_OUTPUTS
from kernels.gpu.dec.residual_decode_kernel import add_residual_kernel
from kernels.gpu.primitives import interpreting, launch

# The interpreter takes as long for a program of many warps as for one of few.
_WARPS = 32 if interpreting() else 4
# What a warp has: 8 words of each of 32 channels.
_WORDS, _CHANNELS = 8, 32
_PART = 8


def add_residual(
    panel: Tensor, words: Tensor, scale: Tensor, first_row: int = 0, *, asm: bool | None = None
) -> Tensor:
    """panel[n_out, n_in] += scale * nibble, in place, for outputs from `first_row` on.

    panel: bf16 [rows, channels], rows contiguous. words: int32 [channels, ceil(n_out / 8)] on the panel's
    device, the residual's rows of these channels (`fetch.ResidualRows`). scale: float32 [n_out], all of them.
    Sums are float32, rounded to bf16 once more than the panel was. Raises ValueError when shapes do not
    match, or when `first_row` is not the first of a word.
    """
    rows, columns = panel.shape
    _check(panel, words, scale, first_row)
    tiles = -(-columns // _CHANNELS)
    launch(
        add_residual_kernel,
        (-(-tiles * -(-rows // (_WORDS * WORD_OUTPUTS)) // _WARPS),),
        panel,
        words[:, first_row // WORD_OUTPUTS :],
        scale[first_row:],
        rows,
        columns,
        tiles,
        panel.stride(0),
        words.stride(0),
        VECTOR=_vectorised(panel),
        WARPS=_WARPS,
        asm=asm,
        num_warps=_WARPS,
    )
    return panel


def _check(panel: Tensor, words: Tensor, scale: Tensor, first_row: int) -> None:
    rows, columns = panel.shape
    if panel.dtype != torch.bfloat16 or panel.stride(1) != 1:
        raise ValueError(f"a panel is bf16 with contiguous rows, not {panel.dtype} of {panel.stride()}")
    if words.dtype != torch.int32 or words.shape != (columns, -(-scale.numel() // WORD_OUTPUTS)):
        raise ValueError(f"residual rows {list(words.shape)} do not fit {scale.numel()} x {columns}")
    if first_row % WORD_OUTPUTS or not 0 <= first_row <= scale.numel() - rows:
        raise ValueError(f"{rows} outputs from {first_row} on are no words of {scale.numel()}")


def _vectorised(panel: Tensor) -> bool:
    whole = panel.shape[1] % _PART == 0 and panel.stride(0) % _PART == 0
    return whole and panel.data_ptr() % (_PART * panel.element_size()) == 0
