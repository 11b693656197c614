"""Decoding look-up tables to bf16, whole or in panels, for products of many vectors."""

from __future__ import annotations

from torch import Tensor

from kernels.gpu.lowbit.decoding import decode_bf16
from kernels.gpu.lowbit.table_decode_kernel import table_decode_kernel
from kernels.gpu.lowbit.tables import SUPERSTEP, DeviceTables
from kernels.gpu.panel import Range


def decode_tables_bf16(
    tables: DeviceTables,
    row_range: Range | None = None,
    column_range: Range | None = None,
    *,
    out: Tensor | None = None,
    asm: bool | None = None,
) -> Tensor:
    """The weights, or the panel of `row_range` and `column_range` (ends excluded), each rounded once to bf16.

    Reads the groups of 8 rows and the supersteps of 512 columns that hold the panel: those that are whole
    cost no more than they must. Raises ValueError for a panel that is not inside, or does not fit `out`.
    """
    tensors = (tables.words, tables.entries, tables.zero, tables.step)
    return decode_bf16(table_decode_kernel, tables, tensors, SUPERSTEP, (row_range, column_range), out, asm)
