"""Decoding packed weights, whole or in panels: to int8, and to bf16 for products of many vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.decode_kernel import decode_kernel
from kernels.gpu.panel import Panel, Run, panel_buffer, panel_of, step_runs
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.primitives import launch
from kernels.gpu.saving import scratch_asm

_WARPS = 4


def decode_int8(
    planes: DevicePlanes,
    *,
    row_range: tuple[int, int] | None = None,
    column_range: tuple[int, int] | None = None,
    out: Tensor | None = None,
    asm: bool | None = None,
) -> Tensor:
    """The packed int8 matrix, or the panel of `row_range` and `column_range` (ends excluded) of it."""
    return _decode(planes, panel_of(planes, row_range, column_range), torch.int8, out, asm)


def decode_bf16(
    planes: DevicePlanes,
    row_range: tuple[int, int] | None = None,
    column_range: tuple[int, int] | None = None,
    *,
    out: Tensor | None = None,
    asm: bool | None = None,
) -> Tensor:
    """As `decode_int8`, times the scale and rounded once to bf16.

    Column panels read only their own part of the weights; a row panel reads the groups that hold its rows.
    """
    return _decode(planes, panel_of(planes, row_range, column_range), torch.bfloat16, out, asm)


def _decode(
    planes: DevicePlanes, panel: Panel, dtype: torch.dtype, out: Tensor | None, asm: bool | None
) -> Tensor:
    out = panel_buffer(planes, panel, dtype, out)
    for run in step_runs(panel, planes.steps, planes.unroll):
        _launch(planes, panel, out, run, asm)
    return out


def _launch(planes: DevicePlanes, panel: Panel, out: Tensor, run: Run, asm: bool | None) -> None:
    launch(
        decode_kernel,
        (planes.groups, -(-run.count // _WARPS)),
        planes.planes,
        planes.table,
        planes.offsets,
        planes.stream,
        planes.patch_columns,
        planes.patch_deltas,
        planes.permutation,
        planes.scale,
        out,
        *panel.rows,
        *panel.columns,
        run.first,
        planes.steps // planes.unroll,
        planes.steps % planes.unroll,
        out.shape[1],
        UNROLL=planes.unroll,
        STEPS=run.steps,
        KINDS=planes.kinds,
        ALL_ROWS=panel.rows == (0, planes.rows),
        ROW_SCALES=planes.scale.numel() > 1,
        PATCHES=planes.patch_deltas.numel() > 0,
        BF16=out.dtype == torch.bfloat16,
        VECTOR=panel.vectorised(out),
        SPACE=scratch_asm(_WARPS, run.steps, planes.kinds),
        WARPS=_WARPS,
        asm=asm,
        num_warps=_WARPS,
    )
