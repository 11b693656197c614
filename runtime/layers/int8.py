"""Lossless layer: the INT8 weights that INT8-X codes, through torch's weight-only int8 product."""

from __future__ import annotations

import torch

from kernels.cpu.products import int8_product
from kernels.int8x import Quantised

# torch's product loads whole cache lines and crashes on codes that begin within one, as in a mapped file.
ALIGNMENT = 64


class Int8:
    """value = q * scale / columns: q int8 [n_out, n_in], scale float32 [n_out] or [1], columns [n_in].

    Inputs are divided by `columns` before the product, so a factor costs one multiplication per input.
    """

    def __init__(self, q: torch.Tensor, scale: torch.Tensor, columns: torch.Tensor | None = None) -> None:
        self.q, self.scale = _aligned(q.contiguous()), scale.float().expand(q.shape[0]).contiguous()
        self.n_out, self.n_in = q.shape
        self.inverse_columns = None if columns is None else columns.float().reciprocal()
        self._scale_bf16 = self.scale.bfloat16()

    @classmethod
    def of(cls, matrix: Quantised) -> Int8:
        """The layer of one stored matrix."""
        return cls(matrix.q, matrix.row_scale(), matrix.scales.column_scale())

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        scaled = x if self.inverse_columns is None else x * self.inverse_columns
        return int8_product(scaled.bfloat16(), self.q, self._scale_bf16).to(x.dtype)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """One token in bfloat16, already divided by `columns`: [1, n_in] -> [1, n_out]."""
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
