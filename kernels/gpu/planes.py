"""`DevicePlanes`: an int8 matrix as the GPU kernels read it, and how many bits that takes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.fields import GROUP_ROWS, STEP_COLUMNS, Form, form_of_key

# From so many groups on, one or two warps each fill a GPU.
MANY_GROUPS = 3000

# Columns of `DevicePlanes.table`.
PLANE, KEY, PATCHES, OFFSETS = range(4)


@dataclass(frozen=True, slots=True)
class DevicePlanes:
    """An int8 matrix [rows, columns] in planes of adaptive width, with escapes and patches; lossless.

    Rows are sorted by mean |q| and taken in groups of 8; columns in steps of 128, and `unroll` steps make a
    superstep (the steps left over are supersteps of one). Zero rows and columns fill the last of each.

    kinds: bit 1: some group is escaped; bit 2: some is listed; bit 0 is always set.
    planes: int32 words; group after group, in it superstep after superstep, each in lane order.
    table: int32 [groups + 1, 4]: plane offset in units of 32 words, `Form.key`, first patch round, first
    entry of `offsets`. The last line only ends the patches.
    offsets: int32: where in `stream` each superstep of a group begins, in bits for escaped groups, in words
    for listed ones, which also have the end of the last.
    stream: int32 words: short codes of escaped weights, most significant bit first, ordered by group,
    superstep, lane, step and position; and the lists of `lists.pack_lists`.
    patch_columns, patch_deltas: int16 (read as unsigned) and int8, both [rounds, 32]: weight += delta; lane
    4 g + c serves row g of a group.
    permutation: int16 (read as unsigned) or int32 [8 groups]: the matrix row of each sorted row; `rows` or
    more for the zero rows.
    scale: float32 [1] or [rows]: the weight of q is q * scale.
    """

    rows: int
    columns: int
    unroll: int
    kinds: int
    planes: Tensor
    table: Tensor
    offsets: Tensor
    stream: Tensor
    patch_columns: Tensor
    patch_deltas: Tensor
    permutation: Tensor
    scale: Tensor

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise ValueError(f"a matrix of {self.rows} x {self.columns} cannot be packed")
        if tuple(self.table.shape) != (self.groups + 1, 4):
            raise ValueError(
                f"the group table has shape {tuple(self.table.shape)}, not ({self.groups + 1}, 4)"
            )
        if self.scale.numel() not in (1, self.rows) or self.scale.dtype != torch.float32:
            raise ValueError(f"scales must be float32, 1 or {self.rows} of them")

    @property
    def groups(self) -> int:
        """Groups of 8 rows."""
        return -(-self.rows // GROUP_ROWS)

    @property
    def steps(self) -> int:
        """Steps of 128 columns."""
        return -(-self.columns // STEP_COLUMNS)

    @property
    def supersteps(self) -> int:
        """Whole supersteps and, after them, single steps."""
        return self.steps // self.unroll + self.steps % self.unroll

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.planes.device

    @property
    def nbytes(self) -> int:
        """Bytes of everything the kernels need: planes, tables, streams, patches with padding, order,
        scales.
        """
        return sum(t.numel() * t.element_size() for t in self._tensors().values())

    @property
    def bits_per_weight(self) -> float:
        """8 * nbytes over the weights of the unpadded matrix."""
        return 8 * self.nbytes / (self.rows * self.columns)

    def forms(self) -> list[Form]:
        """The form of every group, in sorted order."""
        return [form_of_key(key) for key in self.table[:-1, KEY].tolist()]

    def to(self, device: torch.device | str) -> DevicePlanes:
        """The same matrix on another device."""
        return replace(self, **{name: tensor.to(device) for name, tensor in self._tensors().items()})

    def clone(self) -> DevicePlanes:
        """A copy with memory of its own."""
        return replace(self, **{name: tensor.clone() for name, tensor in self._tensors().items()})

    def _tensors(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def row_order(planes: DevicePlanes) -> Tensor:
    """`planes.permutation` as int64, unsigned."""
    order = planes.permutation.long()
    return order & 0xFFFF if planes.permutation.dtype == torch.int16 else order
