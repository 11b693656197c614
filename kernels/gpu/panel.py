"""Panels: rectangular parts of packed weights, decoded to where products of many vectors read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from kernels.gpu.fields import STEP_COLUMNS

# Columns that a lane stores at once.
_PART = 8
# Columns that most kernels decode together.
_SUPERSTEP = 4 * STEP_COLUMNS

Range = tuple[int, int]


class Packed(Protocol):
    """What has panels: a matrix [rows, columns] on a device."""

    @property
    def rows(self) -> int:
        """Outputs."""
        ...

    @property
    def columns(self) -> int:
        """Inputs."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the matrix is, and its panels."""
        ...


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows and columns to decode, ends excluded."""

    rows: Range
    columns: Range

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns that the panel has."""
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]

    def vectorised(self, out: Tensor) -> bool:
        """Whether the columns are whole parts of 8, at addresses of `out` that are aligned to them."""
        aligned = out.data_ptr() % (_PART * out.element_size()) == 0
        return aligned and self.columns[0] % _PART == 0 and self.columns[1] % _PART == 0


@dataclass(frozen=True, slots=True)
class Run:
    """`count` supersteps of `steps` steps of 128 columns from step `first` on."""

    first: int
    count: int
    steps: int


def panel_of(weights: Packed, rows: Range | None, columns: Range | None) -> Panel:
    """The panel of these rows and columns (None: all). ValueError if it is empty or not inside."""
    panel = Panel(rows or (0, weights.rows), columns or (0, weights.columns))
    for (first, last), size in ((panel.rows, weights.rows), (panel.columns, weights.columns)):
        if not 0 <= first < last <= size:
            raise ValueError(f"the panel {first}:{last} is not inside a dimension of {size}")
    return panel


def panel_buffer(weights: Packed, panel: Panel, dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """`out` if it takes the panel, a new tensor if it is None; ValueError otherwise."""
    if out is None:
        return torch.empty(panel.shape, dtype=dtype, device=weights.device)
    if tuple(out.shape) != panel.shape or out.dtype != dtype or not out.is_contiguous():
        raise ValueError(
            f"the panel needs a contiguous {dtype} buffer of {panel.shape[0]} x {panel.shape[1]}"
        )
    return out


def step_runs(panel: Panel, steps: int, unroll: int) -> Iterator[Run]:
    """The supersteps of `unroll` steps, then single steps, that hold the panel's columns.

    `steps` are the matrix's; those that do not fill a superstep lie behind it one by one.
    """
    first, last = panel.columns[0] // STEP_COLUMNS, -(-panel.columns[1] // STEP_COLUMNS)
    whole = steps // unroll * unroll
    if first < whole:
        start = first // unroll * unroll
        yield Run(start, -(-(min(last, whole) - start) // unroll), unroll)
    if last > whole:
        start = max(first, whole)
        yield Run(start, last - start, 1)


def even_parts(whole: Range, most: int) -> list[Range]:
    """Nearly even parts of at most `most`, so that panels of them begin where kernels do: at steps of 128.

    Where 512 fit, parts begin at multiples of that; where not even a step fits, a part is one step.
    """
    first, last = whole
    step = _SUPERSTEP if most >= _SUPERSTEP else STEP_COLUMNS
    steps = -(-(last - first) // step)
    width = -(-steps // -(-steps // max(1, most // step))) * step
    return [(at, min(at + width, last)) for at in range(first, last, width)]
