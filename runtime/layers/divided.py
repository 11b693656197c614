"""What layers share whose weights are kept with scaled columns: inputs are divided by the factors first."""

from __future__ import annotations

import torch


class Divided:
    """y = W' (x / columns); `inverse_columns` float32 [n_in], or None where there are no factors."""

    n_out: int
    n_in: int
    inverse_columns: torch.Tensor | None

    def divided(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs [tokens, n_in] over the column factors."""
        return x if self.inverse_columns is None else x * self.inverse_columns

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        return self.product(self.divided(x).bfloat16()).to(x.dtype)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """bfloat16 inputs, already divided: [tokens, n_in] -> [tokens, n_out]."""
        raise NotImplementedError


def inverse(columns: torch.Tensor | None) -> torch.Tensor | None:
    """What inputs are multiplied with, float32."""
    return None if columns is None else columns.float().reciprocal()
