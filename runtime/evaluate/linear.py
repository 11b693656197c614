"""Linears as the evaluation computes them: y = Q x + R (x masked), every position corrected, in float32."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kernels.dec import bucket_mask, exact_mask, random_mask, static_mask
from runtime.calibration import InputStatistics
from runtime.evaluate.request import Select

Mask = Callable[[torch.Tensor, int], torch.Tensor]


class Corrected:
    """base and residual float32 [n_out, n_in]; `mask(x, k_chunk)` picks the corrected inputs."""

    def __init__(self, base: torch.Tensor, residual: torch.Tensor, k_chunk: int, mask: Mask) -> None:
        self.base, self.residual, self.k_chunk, self.mask = base, residual, k_chunk, mask
        self.n_out, self.n_in = base.shape

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        return x @ self.base.t() + (x * self.mask(x, self.k_chunk)) @ self.residual.t()

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        return self.prefill(x)

    def bytes_in_memory(self) -> int:
        """Bytes of base and residual."""
        return self.base.nbytes + self.residual.nbytes


def mask_rule(select: Select, statistics: InputStatistics | None, seed: int) -> Mask:
    """The rule of a linear; bucket and static need its calibrated statistics."""
    if select == "exact":
        return exact_mask
    if select == "random":
        generator = torch.Generator().manual_seed(seed)
        return lambda x, k: random_mask(x, k, generator)
    if statistics is None:
        raise ValueError(f"selection {select} needs calibration")
    if select == "bucket":
        profile = statistics.profile
        return lambda x, k: bucket_mask(x, k, profile)
    importance = statistics.mean_square
    return lambda x, k: static_mask(x, k, importance)


def int8_rounded(weight: torch.Tensor, scale: str) -> torch.Tensor:
    """Symmetric INT8 and back: one step absmax/127 per row or for the whole tensor."""
    largest = weight.abs().amax(dim=1, keepdim=True) if scale == "row" else weight.abs().amax()
    step = (largest / 127).clamp(min=torch.finfo(torch.float32).tiny)
    return (weight / step).round().clamp(-127, 127) * step
