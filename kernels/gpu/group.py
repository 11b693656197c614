"""What the kernels read of a group of rows before its planes."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def group_lines(
    planes: tl.tensor,
    table: tl.tensor,
    offsets: tl.tensor,
    stream: tl.tensor,
    address: tl.tensor,
    number: tl.tensor,
) -> Any:
    """The group's (plane, entries of `offsets`, stream, shared address, short bits, kind), width, patch
    rounds.
    """
    line = table + number * 4
    key = tl.load(line + 1)
    plane = planes + tl.load(line).to(tl.int64) * 32
    short_bits = (key >> 4) & 15
    kind = tl.where(short_bits > 0, 1 + (key >> 8), 0)
    group = (plane, offsets + tl.load(line + 3), stream, address, short_bits, kind)
    return group, key & 15, tl.load(line + 2), tl.load(line + 6)


@triton.jit
def group_rows(permutation: tl.tensor, sorted_rows: tl.tensor) -> Any:
    """Rows of the matrix that the sorted rows are; beyond the last for rows of padding."""
    row = tl.load(permutation + sorted_rows).to(tl.int32)
    if permutation.dtype.element_ty == tl.int16:
        row = row & 0xFFFF
    return row
