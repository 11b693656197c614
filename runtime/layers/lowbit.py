"""Base-only layer: 4- or 3-bit groups through torch's int4 product."""

from __future__ import annotations

import torch

from kernels.cpu.products import int4_product, pack_int4
from kernels.dec.int4op import int4_op_codes, int4_op_tables
from kernels.dec.rtn import GroupCodes


class LowBit:
    """A quantised base in the product's packed form; 3-bit codes ride in 4 bits on the CPU."""

    def __init__(self, base: GroupCodes) -> None:
        self.n_out, self.n_in = base.codes.shape
        self.bits = base.bits
        self._packed = pack_int4(int4_op_codes(base))
        self._group, self._tables = int4_op_tables(base)

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        return self.product(x.bfloat16()).to(x.dtype)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 [tokens, n_in] -> [tokens, n_out]."""
        return int4_product(x, self._packed, self._group, self._tables)

    def bytes_in_memory(self) -> int:
        """Bytes of codes and tables."""
        return self._packed.nbytes + self._tables.nbytes
