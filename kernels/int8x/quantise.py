"""Symmetric INT8 rounding: q = clamp(round(w / s), -127, 127), all in float32.

numpy and compiled loops only: one pass each, and no thread pool of torch to wake for every small tensor.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from kernels.int8x import rounding

Granularity = Literal["tensor", "row"]

QMAX = 127


def quantise(weight: torch.Tensor, granularity: Granularity) -> tuple[torch.Tensor, torch.Tensor]:
    """A floating matrix [n_out, n_in] as (q int8 of the same shape, scale float32 [1] or [n_out]).

    Source: INT8 per tensor as in the INT8-X paper, or per output row. ValueError for NaN and infinities.
    """
    rows = _float32(weight).reshape(1 if granularity == "tensor" else weight.shape[0], -1)
    scale = _step(rows)
    q = np.empty(rows.shape, np.int8)
    rounding.round_rows(rows, scale, q)
    return torch.from_numpy(q).reshape(weight.shape), torch.from_numpy(scale)


def dequantise(q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """q int8 [n_out, n_in] times its scale [1] or [n_out], float32."""
    return q.float().mul_(scale.reshape(-1, *[1] * (q.dim() - 1)))


def _step(rows: np.ndarray) -> np.ndarray:
    bits = np.empty(rows.shape[0], np.uint32)
    rounding.absmax_bits(rows.view(np.uint32), bits)
    absmax = bits.view(np.float32)
    if not np.isfinite(absmax).all():
        raise ValueError("it holds values that are not finite numbers")
    step = np.maximum(absmax / np.float32(QMAX), np.finfo(np.float32).tiny)
    return np.where(absmax > 0, step, np.float32(1))


def _float32(weight: torch.Tensor) -> np.ndarray:
    weight = weight.detach().contiguous()
    if weight.dtype == torch.bfloat16:
        bits = weight.view(torch.uint16).numpy().astype(np.uint32)
        bits <<= 16
        return bits.view(np.float32)
    with np.errstate(over="ignore"):
        return weight.numpy().astype(np.float32, copy=False)
