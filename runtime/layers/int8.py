"""Lossless layer: the INT8 weights that INT8-X codes, through torch's weight-only int8 product."""

from __future__ import annotations

import torch

from kernels.cpu.products import int8_product
from kernels.int8x import Quantised
from runtime.layers.divided import Divided, inverse

# torch's product loads whole cache lines and crashes on codes that begin within one, as in a mapped file.
ALIGNMENT = 64


class Int8(Divided):
    """value = q * scale / columns: q int8 [n_out, n_in], scale float32 [n_out] or [1], columns [n_in].

    Inputs are divided by `columns` before the product, so a factor costs one multiplication per input.
    """

    def __init__(self, q: torch.Tensor, scale: torch.Tensor, columns: torch.Tensor | None = None) -> None:
        self.q, self.scale = _aligned(q.contiguous()), scale.float().expand(q.shape[0]).contiguous()
        self.n_out, self.n_in = q.shape
        self.inverse_columns = inverse(columns)
        self._scale_bf16 = self.scale.bfloat16()

    @classmethod
    def of(cls, matrix: Quantised) -> Int8:
        """The layer of one stored matrix."""
        return cls(matrix.q, matrix.row_scale(), matrix.scales.column_scale())

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 inputs, already divided: [tokens, n_in] -> [tokens, n_out]."""
        return int8_product(x, self.q, self._scale_bf16)

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Dequantised rows, float32 [len(index), n_in]: the embedding look-up of a tied table."""
        values = self.q[index].float() * self.scale[index, None]
        return values if self.inverse_columns is None else values * self.inverse_columns

    def bytes_in_memory(self) -> int:
        """Bytes of codes and scales."""
        columns = 0 if self.inverse_columns is None else self.inverse_columns.nbytes
        return self.q.nbytes + self.scale.nbytes + columns


def _aligned(q: torch.Tensor) -> torch.Tensor:
    return q if q.data_ptr() % ALIGNMENT == 0 else q.clone()
