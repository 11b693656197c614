"""DecDEC layer: a low-bit base and the correction of its largest inputs."""

from __future__ import annotations

import torch

from kernels.cpu.products import residual_product
from runtime.layers.correction import Correction
from runtime.layers.int8 import Int8
from runtime.layers.lowbit import LookUp, LowBit


class Compensated:
    """Decode corrects `k_chunk` channels of each 1024; prefill corrects all of them, or none.

    The paper leaves the prompt uncorrected. Here every prompt token gets the whole residual unless
    `prompt_correction` is off, so the KV cache has nearly INT8 quality; for many tokens that is one more
    dense product.
    """

    def __init__(
        self, base: LowBit | LookUp | Int8, correction: Correction, prompt_correction: bool = True
    ) -> None:
        self.base, self.correction, self.prompt_correction = base, correction, prompt_correction
        self.n_out, self.n_in = base.n_out, base.n_in
        self.inverse_columns = base.inverse_columns

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out], every channel corrected where the prompt is."""
        if not self.prompt_correction:
            return self.base.prefill(x)
        narrow = self.base.divided(x).bfloat16()
        residual = self.correction.residual()
        lost = residual_product(narrow, residual.codes, residual.scale)
        return self.base.product(narrow).to(x.dtype) + lost.to(x.dtype)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out], k_chunk channels corrected."""
        y = self.base.decode(x)
        correction = self.correction.apply(self.base.divided(x)[0].float().numpy())
        return y + torch.from_numpy(correction).to(x.dtype) if correction.size else y

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """The base product alone, one token in bfloat16, already divided by the column factors."""
        return self.base.product(x)

    def bytes_in_memory(self) -> int:
        """Bytes of base and residual."""
        return self.base.bytes_in_memory() + self.correction.bytes_in_memory()
