"""Decoding group codes to bf16, whole or in panels, for products of many vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS
from kernels.gpu.lowbit.group_decode_kernel import group_decode_kernel
from kernels.gpu.lowbit.groups import UNROLL, DeviceGroups
from kernels.gpu.panel import Panel, Range, Run, panel_buffer, panel_of, step_runs
from kernels.gpu.primitives import interpreting, launch

# The interpreter takes as long for a program of many warps as for one of few.
_WARPS = 32 if interpreting() else 4


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
    panel = panel_of(weights, row_range, column_range)
    out = panel_buffer(weights, panel, torch.bfloat16, out)
    for run in step_runs(panel, weights.steps, UNROLL):
        _launch(weights, panel, out, run, asm)
    return out


def _launch(weights: DeviceGroups, panel: Panel, out: Tensor, run: Run, asm: bool | None) -> None:
    blocks = -(-panel.rows[1] // GROUP_ROWS) - panel.rows[0] // GROUP_ROWS
    launch(
        group_decode_kernel,
        (-(-blocks * run.count // _WARPS),),
        weights.words,
        weights.tables,
        out,
        *panel.rows,
        *panel.columns,
        run.first,
        run.count,
        blocks * run.count,
        weights.steps,
        out.shape[1],
        BITS=weights.bits,
        STEPS=run.steps,
        VECTOR=panel.vectorised(out),
        WARPS=_WARPS,
        asm=asm,
        num_warps=_WARPS,
    )
