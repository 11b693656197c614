"""Base-only layers: 4- or 3-bit groups through torch's int4 product, look-up tables as bfloat16."""

from __future__ import annotations

import torch

from kernels.cpu.products import INT4_ROWS, int4_product, pack_int4
from kernels.dec import GroupCodes, TableCodes, dequantise, dequantise_table, int4_op_codes, int4_op_tables
from kernels.dec.int4op import has_int4_op_group
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
    """A base that torch has no product for on the CPU: its values are kept in bfloat16. That holds entries of
    tables exactly. Values of groups, where their shapes are not the int4 product's, are rounded.
    """

    def __init__(self, base: TableCodes | GroupCodes, columns: torch.Tensor | None = None) -> None:
        self.n_out, self.n_in = base.codes.shape
        self.inverse_columns = inverse(columns)
        values = dequantise(base) if isinstance(base, GroupCodes) else dequantise_table(base)
        self._weight = values.bfloat16()

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
    if isinstance(base, GroupCodes) and has_int4_product(len(base.codes), base.codes.shape[1], base.group):
        return LowBit(base, columns)
    return Int8.of(base) if isinstance(base, Quantised) else LookUp(base, columns)


def has_int4_product(n_out: int, n_in: int, group: int) -> bool:
    """Whether torch's product can have these groups; models of unusual sizes have others."""
    return n_out % INT4_ROWS == 0 and has_int4_op_group(n_in, group)
