"""`DeviceGroups`: group-quantised weights of 3 or 4 bits as the product kernel reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernels.dec.rtn import GROUP, GroupCodes
from kernels.gpu.fields import GROUP_ROWS, LANES, STEP_COLUMNS
from kernels.gpu.fragments import superstep_words

# Steps of 128 columns that are decoded together.
UNROLL = 4
_WEIGHTS_AT_ONCE = 1 << 24


@dataclass(frozen=True, slots=True)
class DeviceGroups:
    """A matrix [rows, columns]: weight = (code - 2^(bits-1)) * scale + zero in groups of 128 columns.

    Rows are taken in blocks of 8 and columns in steps of 128, both filled up with zero weights.

    words: int32 [blocks, words]: of each block its supersteps of `UNROLL` steps, then single steps, in lane
    order (`fragments.superstep_words`).
    tables: int32 [blocks, ceil(steps / 4), 8 rows, 4 steps]: bits of a bfloat16 scale, and in the upper half
    of a bfloat16 zero.
    """

    bits: int
    rows: int
    columns: int
    words: Tensor
    tables: Tensor

    def __post_init__(self) -> None:
        if self.bits not in (3, 4) or self.rows < 1 or self.columns < 1:
            raise ValueError(f"no product has {self.bits} bits and {self.rows} x {self.columns} weights")
        words = (self.blocks, self.steps * self.bits * LANES)
        if tuple(self.words.shape) != words or self.words.dtype != torch.int32:
            raise ValueError(f"the words have shape {tuple(self.words.shape)}, not {words} of int32")
        tables = (self.blocks, -(-self.steps // UNROLL), GROUP_ROWS, UNROLL)
        if tuple(self.tables.shape) != tables or self.tables.dtype != torch.int32:
            raise ValueError(f"the tables have shape {tuple(self.tables.shape)}, not {tables} of int32")

    @property
    def blocks(self) -> int:
        """Blocks of 8 rows."""
        return -(-self.rows // GROUP_ROWS)

    @property
    def steps(self) -> int:
        """Steps of 128 columns."""
        return -(-self.columns // STEP_COLUMNS)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.words.device

    @property
    def nbytes(self) -> int:
        """Bytes of words and tables, padding included."""
        return 4 * (self.words.numel() + self.tables.numel())

    @property
    def bits_per_weight(self) -> float:
        """8 * nbytes over the weights of the unpadded matrix."""
        return 8 * self.nbytes / (self.rows * self.columns)

    def to(self, device: torch.device | str) -> DeviceGroups:
        """The same matrix on another device."""
        return replace(self, words=self.words.to(device), tables=self.tables.to(device))


def fits_groups(columns: int, group: int) -> bool:
    """Whether the product can have these groups: of 128 columns, of a multiple, or one for all columns."""
    return group % GROUP == 0 or group >= columns


def pack_groups(base: GroupCodes) -> DeviceGroups:
    """The base in the product's layout, on the base's device. ValueError unless its groups fit."""
    rows, columns = base.codes.shape
    if not fits_groups(columns, base.group):
        raise ValueError(f"the product has groups of {GROUP} columns, not {base.group}")
    parts = base.codes.split(GROUP_ROWS * max(1, _WEIGHTS_AT_ONCE // (GROUP_ROWS * columns)))
    words = torch.cat([superstep_words(_padded(part, STEP_COLUMNS), base.bits, UNROLL) for part in parts])
    first_columns = torch.arange(0, columns, GROUP, device=base.scale.device)
    group = first_columns // base.group
    return DeviceGroups(base.bits, rows, columns, words, _tables(base.scale[:, group], base.zero[:, group]))


def _padded(matrix: Tensor, multiple: int) -> Tensor:
    """Zeros added to whole blocks of rows and to a multiple of columns."""
    rows, columns = matrix.shape
    full = matrix.new_zeros(-(-rows // GROUP_ROWS) * GROUP_ROWS, -(-columns // multiple) * multiple)
    full[:rows, :columns] = matrix
    return full


def _tables(scale: Tensor, zero: Tensor) -> Tensor:
    halves = torch.stack([_bf16_bits(_padded(scale, UNROLL)), _bf16_bits(_padded(zero, UNROLL))], -1)
    words = halves.contiguous().view(torch.int32).squeeze(-1)
    return words.view(-1, GROUP_ROWS, words.shape[1] // UNROLL, UNROLL).transpose(1, 2).contiguous()


def _bf16_bits(values: Tensor) -> Tensor:
    exact = values.bfloat16()
    if not torch.equal(exact.float(), values.float()):
        raise ValueError("scales and zeros must be exact in bfloat16")
    return exact.view(torch.int16)
