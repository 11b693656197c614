"""Symmetric INT8 rounding: q = clamp(round(w / s), -127, 127), all in float32."""

from __future__ import annotations

from typing import Literal

import torch

Granularity = Literal["tensor", "row"]

QMAX = 127


def absmax_scale(weight: torch.Tensor, granularity: Granularity) -> torch.Tensor:
    """Step absmax / 127 as float32 [1] or [n_out]; 1 where all weights are zero.

    ValueError when a weight is NaN or infinite (in float32).
    """
    rows = weight.reshape(1, -1) if granularity == "tensor" else weight.reshape(weight.shape[0], -1)
    low, high = torch.aminmax(rows, dim=1)
    absmax = torch.maximum(-low, high).float()
    if not torch.isfinite(absmax).all():
        raise ValueError("it holds values that are not finite numbers")
    step = (absmax / QMAX).clamp_min(torch.finfo(torch.float32).tiny)
    return torch.where(absmax > 0, step, torch.ones_like(step))


def quantise(weight: torch.Tensor, granularity: Granularity) -> tuple[torch.Tensor, torch.Tensor]:
    """A floating matrix [n_out, n_in] as (q int8 of the same shape, scale float32 [1] or [n_out]).

    Source: INT8 per tensor as in the INT8-X paper, or per output row. ValueError for NaN and infinities.
    """
    weight = weight.float()
    scale = absmax_scale(weight, granularity)
    q = weight / scale.reshape(-1, *[1] * (weight.dim() - 1))
    return q.round_().clamp_(-QMAX, QMAX).to(torch.int8), scale


def dequantise(q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """q int8 [n_out, n_in] times its scale [1] or [n_out], float32."""
    return q.float().mul_(scale.reshape(-1, *[1] * (q.dim() - 1)))
