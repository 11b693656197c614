"""The CPU's layout of residual codes: two outputs a byte, half a row apart, so that both unpack in order."""

from __future__ import annotations

import torch

from kernels.cpu.correction import CODE_ZERO


def pack_halves(codes: torch.Tensor) -> torch.Tensor:
    """int8 [n_in, n_out] in -8..7 -> uint8 [n_in, h], h = ceil(n_out / 2).

    Byte i holds output i in its low and output h + i in its high nibble, each plus 8.
    """
    n_in, n_out = codes.shape
    half = (n_out + 1) // 2
    shifted = torch.full((n_in, 2 * half), CODE_ZERO, dtype=torch.uint8)
    shifted[:, :n_out] = (codes + CODE_ZERO).to(torch.uint8)
    return shifted[:, :half] | (shifted[:, half:] << 4)


def unpack_halves(packed: torch.Tensor, n_out: int) -> torch.Tensor:
    """The inverse of `pack_halves`: int8 [n_in, n_out]."""
    low = (packed & 15).to(torch.int8)
    high = (packed >> 4).to(torch.int8)
    return (torch.cat([low, high], dim=1)[:, :n_out] - CODE_ZERO).contiguous()
