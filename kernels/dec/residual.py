"""What quantisation lost, in 4-bit symmetric codes with one scale per output channel.

Codes lie by *input* channel, so one corrected channel is one contiguous run: [n_in, n_out], packed to
[n_in, ceil(n_out / 8)] int32 with output 8w + j in bits 4j .. 4j+3 of word w (two's complement).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels.cpu.scale_search import best_scales

LEVEL = 7
CANDIDATES = 32
SMALLEST = 0.35
ROWS_AT_ONCE_ELEMENTS = 1 << 18


@dataclass(frozen=True, slots=True)
class Residual:
    """codes int8 [n_in, n_out] in -7..7; scale float32 [n_out]."""

    codes: torch.Tensor
    scale: torch.Tensor

    def __post_init__(self) -> None:
        if tuple(self.scale.shape) != (self.codes.shape[1],):
            raise ValueError(f"residual scale {list(self.scale.shape)} does not fit {list(self.codes.shape)}")


def quantise_residual(residual: torch.Tensor) -> Residual:
    """Code residual [n_out, n_in] (float32); each row's scale is the grid point of least squared error."""
    residual = residual.float()
    n_out, n_in = residual.shape
    rows = max(1, ROWS_AT_ONCE_ELEMENTS // n_in)
    scale = _best_scale(residual.contiguous())
    codes = torch.empty(n_in, n_out, dtype=torch.int8)
    for start in range(0, n_out, rows):
        part = slice(start, start + rows)
        codes[:, part] = _codes(residual[part], scale[part, None]).to(torch.int8).t()
    return Residual(codes, scale)


def dequantise_residual(residual: Residual) -> torch.Tensor:
    """The residual as float32 [n_out, n_in]."""
    return (residual.codes.float() * residual.scale).t()


def pack_nibbles(codes: torch.Tensor) -> torch.Tensor:
    """int8 [n_in, n_out] in -7..7 -> int32 [n_in, ceil(n_out / 8)]; missing outputs are zero."""
    if codes.numel() and (codes.amax() > LEVEL or codes.amin() < -LEVEL):
        raise ValueError(f"a residual code lies outside -{LEVEL}..{LEVEL}")
    n_in, n_out = codes.shape
    nibbles = torch.zeros(n_in, -(-n_out // 8) * 8, dtype=torch.uint8)
    nibbles[:, :n_out] = codes.view(torch.uint8) & 15
    pairs = nibbles.view(n_in, -1, 2)
    return (pairs[..., 0] | (pairs[..., 1] << 4)).contiguous().view(torch.int32)


def unpack_nibbles(packed: torch.Tensor, n_out: int) -> torch.Tensor:
    """int32 [n_in, ceil(n_out / 8)] -> int8 [n_in, n_out], the inverse of `pack_nibbles`."""
    n_in, words = packed.shape
    if words != -(-n_out // 8):
        raise ValueError(f"{words} words cannot hold {n_out} outputs of 4 bits")
    pairs = packed.contiguous().view(torch.int8)
    low = (pairs << 4) >> 4
    high = pairs >> 4
    return torch.stack([low, high], dim=-1).view(n_in, words * 8)[:, :n_out].contiguous()


def _best_scale(rows: torch.Tensor) -> torch.Tensor:
    largest = rows.abs().amax(1) / LEVEL
    largest = torch.where(largest > 0, largest, torch.ones_like(largest))
    factors = torch.linspace(SMALLEST, 1.0, CANDIDATES)
    scale = torch.empty_like(largest)
    best_scales(rows.numpy(), largest.numpy(), factors.numpy(), np.float32(LEVEL), scale.numpy())
    return scale


def _codes(rows: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (rows / scale).round_().clamp_(-LEVEL, LEVEL)
