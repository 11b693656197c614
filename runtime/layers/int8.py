"""Lossless layer: the INT8 weights that INT8-X codes, through torch's weight-only int8 product."""

from __future__ import annotations

import torch

from kernels.cpu.products import int8_product


class Int8:
    """q int8 [n_out, n_in] and scale float32 [n_out] (a per-tensor scale comes expanded)."""

    def __init__(self, q: torch.Tensor, scale: torch.Tensor) -> None:
        self.q, self.scale = q.contiguous(), scale.float().expand(q.shape[0]).contiguous()
        self.n_out, self.n_in = q.shape
        self._scale_bf16 = self.scale.bfloat16()

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        return int8_product(x.bfloat16(), self.q, self._scale_bf16).to(x.dtype)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.product(x.bfloat16()).to(x.dtype)

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """One token in bfloat16 [1, n_in] -> [1, n_out]."""
        return int8_product(x, self.q, self._scale_bf16)

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Dequantised rows, float32 [len(index), n_in]: the embedding look-up of a tied table."""
        return self.q[index].float() * self.scale[index, None]

    def bytes_in_memory(self) -> int:
        """Bytes of codes and scales."""
        return self.q.nbytes + self.scale.nbytes
