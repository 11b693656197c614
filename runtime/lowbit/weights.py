"""One linear in low-bit form: a base, and the residual that corrects it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.dec import (
    GroupCodes,
    Residual,
    TableCodes,
    dequantise,
    dequantise_table,
    quantise_residual,
)
from kernels.dec.limits import require_sound
from kernels.int8x import Quantised

BaseWeights = GroupCodes | TableCodes | Quantised


@dataclass(frozen=True, slots=True)
class LowBitWeights:
    """A fused linear W [n_out, n_in] as base + residual of W diag(columns): inputs are divided by `columns`.

    columns: float32 [n_in], positive; None where inputs are taken as they are. profile: float32 [n_in], per
    chunk the largest calibrated magnitudes of the divided inputs, descending.
    """

    base: BaseWeights
    correction: Residual
    profile: torch.Tensor
    columns: torch.Tensor | None = None

    def __post_init__(self) -> None:
        n_out, n_in = base_shape(self.base)
        if tuple(self.correction.codes.shape) != (n_in, n_out):
            raise ValueError(f"residual {list(self.correction.codes.shape)} does not fit {[n_out, n_in]}")
        for name, part in (("profile", self.profile), ("columns", self.columns)):
            if part is not None and tuple(part.shape) != (n_in,):
                raise ValueError(f"{name} {list(part.shape)} does not fit {n_in} inputs")
        if self.columns is not None and not bool((self.columns > 0).all()):
            raise ValueError("column factors must be positive")


def base_shape(base: BaseWeights) -> tuple[int, int]:
    """(n_out, n_in)."""
    n_out, n_in = base.q.shape if isinstance(base, Quantised) else base.codes.shape
    return n_out, n_in


def scaled_base(base: BaseWeights) -> torch.Tensor:
    """What the base stands for in the scaled domain, float32 [n_out, n_in]."""
    if isinstance(base, TableCodes):
        return dequantise_table(base)
    if isinstance(base, GroupCodes):
        return dequantise(base)
    return base.q.float() * base.scales.row_scale(base.q.shape[0])[:, None]


def with_residual(
    weight: torch.Tensor, base: BaseWeights, columns: torch.Tensor | None, profile: torch.Tensor
) -> LowBitWeights:
    """The base of weight float32 [n_out, n_in] and the 4-bit residual of what it lost."""
    require_sound(weight)
    scaled = weight.float() if columns is None else weight.float() * columns
    return LowBitWeights(base, quantise_residual(scaled - scaled_base(base)), profile, columns)
