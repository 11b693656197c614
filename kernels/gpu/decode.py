"""Decoding packed weights, whole or in panels: to int8, and to bf16 for products of many vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.decode_kernel import decode_kernel
from kernels.gpu.fields import STEP_COLUMNS
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.primitives import launch
from kernels.gpu.saving import scratch_asm

_WARPS = 4
# Columns that a lane stores at once.
_PART = 8


@dataclass(frozen=True, slots=True)
class _Panel:
    """Rows and columns to decode, ends excluded."""

    rows: tuple[int, int]
    columns: tuple[int, int]


def decode_int8(
    planes: DevicePlanes,
    *,
    row_range: tuple[int, int] | None = None,
    column_range: tuple[int, int] | None = None,
    out: Tensor | None = None,
    asm: bool | None = None,
) -> Tensor:
    """The packed int8 matrix, or the panel of `row_range` and `column_range` (ends excluded) of it."""
    return _decode(planes, _panel(planes, row_range, column_range), torch.int8, out, asm)


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
    return _decode(planes, _panel(planes, row_range, column_range), torch.bfloat16, out, asm)


def _panel(planes: DevicePlanes, rows: tuple[int, int] | None, columns: tuple[int, int] | None) -> _Panel:
    panel = _Panel(rows or (0, planes.rows), columns or (0, planes.columns))
    for (first, last), size in ((panel.rows, planes.rows), (panel.columns, planes.columns)):
        if not 0 <= first < last <= size:
            raise ValueError(f"the panel {first}:{last} is not inside a dimension of {size}")
    return panel


def _decode(
    planes: DevicePlanes, panel: _Panel, dtype: torch.dtype, out: Tensor | None, asm: bool | None
) -> Tensor:
    shape = (panel.rows[1] - panel.rows[0], panel.columns[1] - panel.columns[0])
    if out is None:
        out = torch.empty(shape, dtype=dtype, device=planes.device)
    elif tuple(out.shape) != shape or out.dtype != dtype or not out.is_contiguous():
        raise ValueError(f"the panel needs a contiguous {dtype} buffer of {shape[0]} x {shape[1]}")
    first, last = panel.columns[0] // STEP_COLUMNS, -(-panel.columns[1] // STEP_COLUMNS)
    whole = planes.steps // planes.unroll * planes.unroll
    if first < whole:
        start = first // planes.unroll * planes.unroll
        _launch(
            planes, panel, out, start, -(-(min(last, whole) - start) // planes.unroll), planes.unroll, asm
        )
    if last > whole:
        start = max(first, whole)
        _launch(planes, panel, out, start, last - start, 1, asm)
    return out


def _vectorised(panel: _Panel, out: Tensor) -> bool:
    """Whether the panel's columns are whole parts of 8, at addresses aligned to them."""
    aligned = out.data_ptr() % (_PART * out.element_size()) == 0
    return aligned and panel.columns[0] % _PART == 0 and panel.columns[1] % _PART == 0


def _launch(
    planes: DevicePlanes,
    panel: _Panel,
    out: Tensor,
    first_step: int,
    count: int,
    steps: int,
    asm: bool | None,
) -> None:
    """Decode `count` supersteps of `steps` steps."""
    launch(
        decode_kernel,
        (planes.groups, -(-count // _WARPS)),
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
        first_step,
        planes.steps // planes.unroll,
        planes.steps % planes.unroll,
        out.shape[1],
        UNROLL=planes.unroll,
        STEPS=steps,
        KINDS=planes.kinds,
        ALL_ROWS=panel.rows == (0, planes.rows),
        ROW_SCALES=planes.scale.numel() > 1,
        PATCHES=planes.patch_deltas.numel() > 0,
        BF16=out.dtype == torch.bfloat16,
        VECTOR=_vectorised(panel, out),
        SPACE=scratch_asm(_WARPS, steps, planes.kinds),
        WARPS=_WARPS,
        asm=asm,
        num_warps=_WARPS,
    )
