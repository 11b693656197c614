"""Plain torch forms of packing's inverse and of the digits, to compare the kernels with."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.digits import CHUNK
from kernels.gpu.fields import GROUP_ROWS, LANES, PIECES, REGISTERS, STEP_COLUMNS
from kernels.gpu.planes import KEY, PLANE, DevicePlanes, row_order
from kernels.gpu.prepare import Prepared


def plane_codes(planes: DevicePlanes, group: int) -> Tensor:
    """Unsigned codes int64 [8, 128 steps] in the plane of one group."""
    width = int(planes.table[group, KEY]) & 15
    first = LANES * int(planes.table[group, PLANE])
    parts, at = [], first
    for steps in _superstep_sizes(planes):
        count = LANES * steps * width
        parts.append(_superstep_codes(planes.planes[at : at + count], steps, width))
        at += count
    return torch.cat(parts, 1)


def _superstep_sizes(planes: DevicePlanes) -> list[int]:
    whole = planes.steps // planes.unroll
    return [planes.unroll] * whole + [1] * (planes.steps % planes.unroll)


def _superstep_codes(words: Tensor, steps: int, width: int) -> Tensor:
    lanes, at, left = [], 0, steps * width
    while left:
        run = 4 if left >= 4 else 2 if left >= 2 else 1
        lanes.append(words[at : at + LANES * run].view(LANES, run))
        at, left = at + LANES * run, left - run
    octets = torch.cat(lanes, 1).contiguous().view(torch.uint8).long().view(LANES, steps, width, 4)
    registers = torch.zeros(LANES, steps, REGISTERS, 4, dtype=torch.int64, device=words.device)
    for piece in PIECES[width]:
        bits = octets[:, :, piece.word] >> piece.target & (1 << piece.count) - 1
        registers[:, :, piece.register] |= bits << piece.source
    # lane (g, c), step, register (j, h), byte i -> g, step, c, j, i, h
    split = registers.view(GROUP_ROWS, 4, steps, 4, 2, 4).permute(0, 2, 1, 3, 5, 4)
    return split.reshape(GROUP_ROWS, steps * STEP_COLUMNS)


def group_of_rows(planes: DevicePlanes, group: int) -> Tensor:
    """The matrix rows of a group, int64 [8]; `planes.rows` or more for rows of padding."""
    return row_order(planes)[GROUP_ROWS * group : GROUP_ROWS * (group + 1)]


def digit_values(prepared: Prepared) -> Tensor:
    """What the digits stand for: float64 [batch, columns]."""
    steps, batch = prepared.digits.shape[:2]
    octets = prepared.digits.view(torch.int8).view(steps, batch, 4, 2, 4, 4, 4).double()
    powers = 256.0 ** torch.arange(4, dtype=torch.float64, device=octets.device)
    numbers = (octets * powers.view(4, 1, 1, 1, 1)).sum(2)  # step, vector, h, c, j, i
    columns = numbers.permute(1, 0, 3, 4, 5, 2).reshape(batch, -1)[:, : prepared.columns]
    if not prepared.by_chunk:
        return columns * prepared.x_scale.double()[:, None]
    values = columns * prepared.x_scale.double().repeat_interleave(CHUNK, 1)[:, : prepared.columns]
    return values if prepared.eps is None else values * _common(prepared, prepared.eps)


def _common(prepared: Prepared, eps: float) -> Tensor:
    """1 / rms, float64 [batch, 1]."""
    mean = prepared.squares.double().sum(1, keepdim=True) / prepared.columns
    return (mean + eps).rsqrt()
