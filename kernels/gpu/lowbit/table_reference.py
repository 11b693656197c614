"""Plain torch form of a packed table matrix, to compare the product with."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS, LANES, STEP_COLUMNS
from kernels.gpu.lowbit.tables import FACTORS, SUPERSTEP, DeviceTables


def table_weights(tables: DeviceTables) -> Tensor:
    """The weights that the kernel multiplies with, float64 [rows, columns], from words and entries alone."""
    codes = _codes(tables)[: tables.rows, : tables.columns]
    numbers = _numbers(tables)[: tables.rows].gather(1, codes)
    return (numbers.double() + tables.zero.double()[:, None]) * tables.step.double()[:, None]


def _numbers(tables: DeviceTables) -> Tensor:
    """Numbers in ascending order, int64 [8 groups, 2^bits]."""
    octets = tables.entries.view(torch.uint8).long()
    high, low = octets.chunk(2, 1)
    high = (high + 128) % 256 - 128
    if tables.bits == 4:
        high = torch.cat([high[:, :8], high[:, 8:] - 1], 1)
    return high * FACTORS[tables.bits] + low


def _codes(tables: DeviceTables) -> Tensor:
    """Codes int64 [8 groups, 128 steps]."""
    parts, first = [], 0
    words = tables.words.view(tables.groups, -1)
    while first < words.shape[1]:
        left = (words.shape[1] - first) // (LANES * tables.bits)
        steps = SUPERSTEP if left >= SUPERSTEP else 1
        count = LANES * steps * tables.bits
        parts.append(_step_codes(words[:, first : first + count], steps, tables.bits))
        first += count
    return torch.cat(parts, 1)


def _step_codes(words: Tensor, steps: int, bits: int) -> Tensor:
    lanes, first, left = [], 0, steps * bits
    while left:
        run = 4 if left >= 4 else 2 if left >= 2 else 1
        lanes.append(words[:, first : first + LANES * run].reshape(-1, LANES, run))
        first, left = first + LANES * run, left - run
    ordered = torch.cat(lanes, 2).long().view(-1, LANES, steps, bits)
    if bits == 3:
        fourth = sum((ordered[..., bit] >> 3 & 0x11111111) << bit for bit in range(3))
        ordered = torch.cat([ordered, torch.as_tensor(fourth)[..., None]], 3)
    nibbles = ordered[..., None] >> torch.arange(0, 32, 4, device=words.device) & (2**bits - 1)
    # group, (g, c), step, word j, (half h, byte i) -> group, g, step, c, j, i, h
    split = nibbles.view(-1, GROUP_ROWS, 4, steps, 4, 2, 4).permute(0, 1, 3, 2, 4, 6, 5)
    return split.reshape(-1, steps * STEP_COLUMNS)
