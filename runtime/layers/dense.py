"""Dense layer: the reference."""

from __future__ import annotations

import torch


class Dense:
    """y = W x with W float32 or bfloat16 [n_out, n_in]."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight
        self.n_out, self.n_in = weight.shape

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        return torch.nn.functional.linear(x.to(self.weight.dtype), self.weight).to(x.dtype)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def bytes_in_memory(self) -> int:
        """Bytes of the weight."""
        return self.weight.nbytes
