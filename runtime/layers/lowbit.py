"""Base-only layers: 4- or 3-bit groups through torch's int4 product, look-up tables as bfloat16."""

from __future__ import annotations

import torch

from kernels.cpu.products import int4_product, pack_int4
from kernels.dec import GroupCodes, TableCodes, dequantise_table, int4_op_codes, int4_op_tables
from kernels.int8x import Quantised
from runtime.layers.divided import Divided, inverse
from runtime.layers.int8 import Int8


class LowBit(Divided):
    """A group-wise base in the product's packed form; 3-bit codes ride in 4 bits on the CPU."""

    def __init__(self, base: GroupCodes, columns: torch.Tensor | None = None) -> None:
        self.n_out, self.n_in = base.codes.shape
        self.bits, self.inverse_columns = base.bits, inverse(columns)
        self._packed = pack_int4(int4_op_codes(base))
        self._group, self._tables = int4_op_tables(base)

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 inputs, already divided: [tokens, n_in] -> [tokens, n_out]."""
        return int4_product(x, self._packed, self._group, self._tables)

    def bytes_in_memory(self) -> int:
        """Bytes of codes and tables."""
        return self._packed.nbytes + self._tables.nbytes


class LookUp(Divided):
    """A base of look-up tables. torch has no such product on the CPU, so its values are kept in bfloat16,
    which holds every table entry exactly.
    """

    def __init__(self, base: TableCodes, columns: torch.Tensor | None = None) -> None:
        self.n_out, self.n_in = base.codes.shape
        self.inverse_columns = inverse(columns)
        self._weight = dequantise_table(base).bfloat16()

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 inputs, already divided: [tokens, n_in] -> [tokens, n_out]."""
        return torch.nn.functional.linear(x, self._weight)

    def bytes_in_memory(self) -> int:
        """Bytes of the values."""
        return self._weight.nbytes


def base_layer(
    base: GroupCodes | TableCodes | Quantised, columns: torch.Tensor | None
) -> LowBit | LookUp | Int8:
    """The layer that computes with a base."""
    if isinstance(base, GroupCodes):
        return LowBit(base, columns)
    return LookUp(base, columns) if isinstance(base, TableCodes) else Int8.of(base)
