"""Decoding look-up tables to bf16, whole or in panels, for products of many vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS
from kernels.gpu.lowbit.table_decode_kernel import table_decode_kernel
from kernels.gpu.lowbit.tables import SUPERSTEP, DeviceTables
from kernels.gpu.panel import Panel, Range, Run, panel_buffer, panel_of, step_runs
from kernels.gpu.primitives import interpreting, launch

# The interpreter takes as long for a program of many warps as for one of few.
_WARPS = 32 if interpreting() else 4


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
    panel = panel_of(tables, row_range, column_range)
    out = panel_buffer(tables, panel, torch.bfloat16, out)
    for run in step_runs(panel, tables.steps, SUPERSTEP):
        _launch(tables, panel, out, run, asm)
    return out


def _launch(tables: DeviceTables, panel: Panel, out: Tensor, run: Run, asm: bool | None) -> None:
    groups = -(-panel.rows[1] // GROUP_ROWS) - panel.rows[0] // GROUP_ROWS
    launch(
        table_decode_kernel,
        (-(-groups * run.count // _WARPS),),
        tables.words,
        tables.entries,
        tables.zero,
        tables.step,
        out,
        *panel.rows,
        *panel.columns,
        run.first,
        run.count,
        groups * run.count,
        tables.steps,
        out.shape[1],
        BITS=tables.bits,
        STEPS=run.steps,
        VECTOR=panel.vectorised(out),
        WARPS=_WARPS,
        asm=asm,
        num_warps=_WARPS,
    )
