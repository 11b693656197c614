"""Symmetric INT8 rounding: q = clamp(round(w * column / row), -127, 127), all in float32.

numpy and compiled loops over tiles of rows: no thread pool of torch to wake for every small tensor, and never
a second copy of a large one in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels.int8x import rounding
from kernels.int8x.pool import for_tiles
from kernels.int8x.scales import Granularity, Scales

QMAX = 127


@dataclass(frozen=True, slots=True)
class Quantised:
    """A matrix as q int8 [n_out, n_in] and its scales; ValueError unless they belong together."""

    q: torch.Tensor
    scales: Scales

    def __post_init__(self) -> None:
        if self.q.dtype != torch.int8 or self.q.dim() != 2:
            raise ValueError(f"q is {self.q.dtype} {list(self.q.shape)}, not an int8 matrix")
        self.scales.check_shape(*self.q.shape)

    def dequantise(self) -> torch.Tensor:
        """The values, float32 [n_out, n_in]."""
        return dequantise(self.q, self.scales)

    def row_scaled(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(q, scale float32 [n_out]) with value = q * scale; ValueError if columns have factors."""
        if self.scales.columns is not None:
            raise ValueError("columns have factors of their own")
        return self.q, self.row_scale()

    def row_scale(self) -> torch.Tensor:
        """What each row is multiplied by, float32 [n_out]."""
        return self.scales.row_scale(self.q.shape[0]).expand(self.q.shape[0])


def absmax_scales(weight: torch.Tensor, granularity: Granularity) -> Scales:
    """Steps of absmax / 127 for a floating matrix [n_out, n_in]: one, or one per row.

    Source: INT8 per tensor as in the INT8-X paper, or per output row. ValueError for NaN and infinities, and
    for "aware", whose factors have to come from elsewhere.
    """
    if granularity == "aware":
        raise ValueError("aware scales do not follow from the weights alone")
    absmax = np.empty(weight.shape[0], np.float32)

    def run(first: int, end: int) -> None:
        absmax[first:end] = _absmax(_float32(weight[first:end]))

    for_tiles(weight.shape[0], weight.shape[1], run)
    if granularity == "tensor":
        absmax = absmax.max(keepdims=True)
    step = np.maximum(absmax / np.float32(QMAX), np.finfo(np.float32).tiny)
    return Scales(granularity, torch.from_numpy(np.where(absmax > 0, step, np.float32(1))))


def quantise(weight: torch.Tensor, scales: Scales) -> torch.Tensor:
    """A floating matrix [n_out, n_in] as q int8 of the same shape. ValueError for NaN and infinities."""
    n_out, n_in = weight.shape
    scales.check_shape(n_out, n_in)
    step = scales.row_scale(n_out).expand(n_out).contiguous().numpy()
    columns, q = scales.column_scale(), np.empty((n_out, n_in), np.int8)

    def run(first: int, end: int) -> None:
        rows, target = _float32(weight[first:end]), q[first:end]
        _absmax(rows)
        if columns is None:
            rounding.round_rows(rows, step[first:end], target)
        else:
            rounding.round_scaled(rows, step[first:end], columns.numpy(), target)

    for_tiles(n_out, n_in, run)
    return torch.from_numpy(q)


def dequantise(q: torch.Tensor, scales: Scales) -> torch.Tensor:
    """The values of q int8 [n_out, n_in], float32."""
    values, columns = q.float().mul_(scales.row_scale(q.shape[0])[:, None]), scales.column_scale()
    return values if columns is None else values.div_(columns)


def _absmax(rows: np.ndarray) -> np.ndarray:
    """Largest magnitude of each row; ValueError if there is a NaN or an infinity."""
    bits = np.empty(rows.shape[0], np.uint32)
    rounding.absmax_bits(rows.view(np.uint32), bits)
    absmax = bits.view(np.float32)
    if not np.isfinite(absmax).all():
        raise ValueError("it holds values that are not finite numbers")
    return absmax


def _float32(weight: torch.Tensor) -> np.ndarray:
    weight = weight.detach().contiguous()
    if weight.dtype == torch.bfloat16:
        bits = weight.view(torch.uint16).numpy().astype(np.uint32)
        bits <<= 16
        return bits.view(np.float32)
    with np.errstate(over="ignore"):
        return weight.numpy().astype(np.float32, copy=False)
