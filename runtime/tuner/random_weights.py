"""Weights of a base's form with random codes: what a product takes depends on shapes alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS, LANES, STEP_COLUMNS
from kernels.gpu.lowbit.groups import UNROLL, DeviceGroups
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import DevicePlanes
from runtime.engine.gpu.footprint import FASTEST, SMALLEST
from runtime.layers.device_products import PackedWeights
from runtime.protocol.bases import BaseSpec

MakeWeights = Callable[[int, int], PackedWeights]
# Blocks that a mixed base's shares of 3 and 4 bits are rounded to.
_MIXED_BLOCKS = 4
# Bits of a bfloat16 scale 2^-7 and a zero of 0.
_SCALE_BITS = 0x3C00
# Gaussian weights of so many standard deviations a step take about so many bits in planes; a doubling costs
# one bit.
_SIGMA_AT_3_3_BITS = 2.0
_SIGMA_BITS = 3.3


def makers(base: str, device: torch.device) -> tuple[MakeWeights, ...]:
    """How the blocks of a base by name ("awq4", "rtn3.5", "squeezellm3", "int8x3.4") are made, in turns.

    INT8-X is packed for speed, as where memory allows it: beside slower planes corrections cost less.
    """
    spec = BaseSpec.parse(base)
    if spec.method == "int8x":
        return (partial(random_planes, spec.bits, device, packing=FASTEST),)
    form = random_tables if spec.method == "squeezellm" else random_groups
    fours = round((spec.bits - 3) * _MIXED_BLOCKS) if spec.mixed else int(spec.bits == 4) * _MIXED_BLOCKS
    bits = [3] * (_MIXED_BLOCKS - fours) + [4] * fours if spec.mixed else [int(spec.bits)]
    return tuple(partial(form, b, device) for b in bits)


def random_groups(bits: int, device: torch.device, rows: int, columns: int) -> DeviceGroups:
    """Group codes."""
    blocks, steps = -(-rows // GROUP_ROWS), -(-columns // STEP_COLUMNS)
    tables = torch.full((blocks, -(-steps // UNROLL), GROUP_ROWS, UNROLL), _SCALE_BITS, dtype=torch.int32)
    return DeviceGroups(
        bits, rows, columns, _words((blocks, steps * bits * LANES), device), tables.to(device)
    )


def random_tables(bits: int, device: torch.device, rows: int, columns: int) -> DeviceTables:
    """Codes of look-up tables."""
    groups, steps = -(-rows // GROUP_ROWS), -(-columns // STEP_COLUMNS)
    return DeviceTables(
        bits=bits,
        rows=rows,
        columns=columns,
        words=_words((groups * steps * LANES * bits,), device),
        entries=_words((GROUP_ROWS * groups, 2**bits // 2), device),
        zero=torch.zeros(rows, device=device),
        step=torch.full((rows,), 2.0**-16, device=device),
    )


def random_planes(
    bits: float, device: torch.device, rows: int, columns: int, packing: float = SMALLEST
) -> DevicePlanes:
    """INT8-X planes of Gaussian weights at about so many bits in the smallest packing."""
    sigma = _SIGMA_AT_3_3_BITS * 2 ** (bits - _SIGMA_BITS)
    q = (torch.randn(rows, columns, device=device) * sigma).round_().clamp_(-127, 127).to(torch.int8)
    return pack_planes(q, torch.full((1,), 2.0**-7, device=device), escape_cost=packing)


def _words(size: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.randint(-(2**31), 2**31 - 1, size, dtype=torch.int32, device=device)
