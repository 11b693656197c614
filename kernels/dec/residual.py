"""What quantisation lost, in symmetric codes with one scale per output channel: 4 bits, or others to compare.

Codes lie by *input* channel, so one corrected channel is one contiguous run: [n_in, n_out], packed to
[n_in, ceil(n_out / 8)] int32 with output 8w + j in bits 4j .. 4j+3 of word w (two's complement).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from kernels.cpu.scale_search import best_scales

BITS = 4
LEVEL = 7
CANDIDATES = 32
# Where the grid of scales begins, as a share of absmax / level: with few levels the best scale clips much.
SMALLEST = {2: 0.04, 4: 0.35, 8: 0.6}
ROWS_AT_ONCE_ELEMENTS = 1 << 18


@dataclass(frozen=True, slots=True)
class Residual:
    """codes int8 [n_in, n_out], in -7..7 with 4 bits; scale float32 [n_out]."""

    codes: torch.Tensor
    scale: torch.Tensor

    def __post_init__(self) -> None:
        if tuple(self.scale.shape) != (self.codes.shape[1],):
            raise ValueError(f"residual scale {list(self.scale.shape)} does not fit {list(self.codes.shape)}")


def residual_level(bits: int) -> int:
    """The largest code of a residual: 2**(bits-1) - 1. ValueError for bits without a grid of scales."""
    if bits not in SMALLEST:
        raise ValueError(f"a residual has {', '.join(map(str, SMALLEST))} bits, not {bits}")
    return int(2 ** (bits - 1)) - 1


def quantise_residual(residual: torch.Tensor, bits: int = BITS) -> Residual:
    """Code residual [n_out, n_in] (float32); each row's scale is the grid point of least squared error.

    Source: DecDEC 4.2. `bits` 2, 4 or 8; only 4 can be packed and served, others are there to compare.
    """
    residual, level = residual.float(), residual_level(bits)
    n_out, n_in = residual.shape
    rows = max(1, ROWS_AT_ONCE_ELEMENTS // n_in)
    scale = _best_scale(residual.contiguous(), bits)
    codes = torch.empty(n_in, n_out, dtype=torch.int8)
    for start in range(0, n_out, rows):
        part = slice(start, start + rows)
        codes[:, part] = _codes(residual[part], scale[part, None], level).to(torch.int8).t()
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


def _best_scale(rows: torch.Tensor, bits: int) -> torch.Tensor:
    level = residual_level(bits)
    largest = rows.abs().amax(1) / level
    largest = torch.where(largest > 0, largest, torch.ones_like(largest))
    scale, factors = torch.empty_like(largest), _factors(bits)
    best_scales(rows.numpy(), largest.numpy(), factors.numpy(), np.float32(level), scale.numpy())
    return scale


def _factors(bits: int) -> torch.Tensor:
    """Evenly spaced, or in equal ratios over the wide range that few levels need."""
    if SMALLEST[bits] >= SMALLEST[BITS]:
        return torch.linspace(SMALLEST[bits], 1.0, CANDIDATES)
    return torch.logspace(math.log10(SMALLEST[bits]), 0.0, 2 * CANDIDATES)


def _codes(rows: torch.Tensor, scale: torch.Tensor, level: int) -> torch.Tensor:
    return (rows / scale).round_().clamp_(-level, level)
