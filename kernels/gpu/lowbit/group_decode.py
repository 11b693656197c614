"""Decoding group codes to bf16, whole or in panels, for products of many vectors."""

from __future__ import annotations

from torch import Tensor

from kernels.gpu.lowbit.decoding import decode_bf16
from kernels.gpu.lowbit.group_decode_kernel import group_decode_kernel
from kernels.gpu.lowbit.groups import UNROLL, DeviceGroups
from kernels.gpu.panel import Range


def decode_groups_bf16(
    weights: DeviceGroups,
    row_range: Range | None = None,
    column_range: Range | None = None,
    *,
    out: Tensor | None = None,
    asm: bool | None = None,
) -> Tensor:
    """The weights, or the panel of `row_range` and `column_range` (ends excluded), each rounded once to bf16.

    Reads the blocks of 8 rows and the supersteps of 512 columns that hold the panel: those that are whole
    cost no more than they must. Raises ValueError for a panel that is not inside, or does not fit `out`.
    """
    tensors = (weights.words, weights.tables)
    return decode_bf16(group_decode_kernel, weights, tensors, UNROLL, (row_range, column_range), out, asm)
