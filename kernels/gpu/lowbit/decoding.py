"""What decoding low-bit weights to bf16 panels has in common, whatever their form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS
from kernels.gpu.lowbit.groups import DeviceGroups
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.panel import Panel, Range, Run, panel_buffer, panel_of, step_runs
from kernels.gpu.primitives import interpreting, launch

# The interpreter takes as long for a program of many warps as for one of few.
_WARPS = 32 if interpreting() else 4


def decode_bf16(
    kernel: Any,
    weights: DeviceGroups | DeviceTables,
    tensors: tuple[Tensor, ...],
    unroll: int,
    ranges: tuple[Range | None, Range | None],
    out: Tensor | None,
    asm: bool | None,
) -> Tensor:
    """The panel of `ranges` (rows, columns; None: all), by a `kernel` that takes `tensors` first; supersteps
    have `unroll` steps. bf16 [rows, columns], into `out` if given; ValueError where that does not fit.
    """
    panel = panel_of(weights, *ranges)
    out = panel_buffer(weights, panel, torch.bfloat16, out)
    for run in step_runs(panel, weights.steps, unroll):
        _launch(kernel, weights, tensors, panel, out, run, asm)
    return out


def _launch(
    kernel: Any,
    weights: DeviceGroups | DeviceTables,
    tensors: tuple[Tensor, ...],
    panel: Panel,
    out: Tensor,
    run: Run,
    asm: bool | None,
) -> None:
    groups = -(-panel.rows[1] // GROUP_ROWS) - panel.rows[0] // GROUP_ROWS
    launch(
        kernel,
        (-(-groups * run.count // _WARPS),),
        *tensors,
        out,
        *panel.rows,
        *panel.columns,
        run.first,
        run.count,
        groups * run.count,
        weights.steps,
        out.shape[1],
        BITS=weights.bits,
        STEPS=run.steps,
        VECTOR=panel.vectorised(out),
        WARPS=_WARPS,
        asm=asm,
        num_warps=_WARPS,
    )
