"""One linear in low-bit form: base codes and the residual that corrects them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from kernels.dec import GROUP, GroupCodes, Residual, dequantise, quantise_residual, quantise_rtn
from runtime.errors import DecdecError

Base = Literal["rtn4", "rtn3"]
BASES: dict[Base, int] = {"rtn4": 4, "rtn3": 3}


@dataclass(frozen=True, slots=True)
class LowBitWeights:
    """A fused linear W [n_out, n_in] as base + residual.

    Base: `(codes - 2**(bits-1)) * scale + zero`, codes uint8 [n_out, n_in], scale and zero float32
    [n_out, n_groups], exact in bfloat16, one entry per `group_size` inputs (the last group may be short).
    Residual: `residual[i, o] * residual_scale[o]`, int8 [n_in, n_out] in -7..7 and float32 [n_out].
    """

    bits: int
    group_size: int
    codes: torch.Tensor
    scale: torch.Tensor
    zero: torch.Tensor
    residual: torch.Tensor
    residual_scale: torch.Tensor

    def __post_init__(self) -> None:
        n_out, n_in = self.codes.shape
        if tuple(self.residual.shape) != (n_in, n_out):
            raise ValueError(f"residual {list(self.residual.shape)} does not fit a base {[n_out, n_in]}")

    @property
    def base(self) -> GroupCodes:
        """The base as kernels take it."""
        return GroupCodes(self.bits, self.group_size, self.codes, self.scale, self.zero)

    @property
    def correction(self) -> Residual:
        """The residual as kernels take it."""
        return Residual(self.residual, self.residual_scale)


def base_bits(base: str) -> int:
    """Bits of a base's codes; DecdecError for an unknown base."""
    bits = {str(name): bits for name, bits in BASES.items()}.get(base)
    if bits is None:
        raise DecdecError(f"Base {base!r} is unknown", f"known are {', '.join(BASES)}")
    return bits


def quantise(weight: torch.Tensor, bits: int, group: int = GROUP) -> LowBitWeights:
    """Round-to-nearest base of weight [n_out, n_in] and the 4-bit residual of what it lost."""
    weight = weight.float()
    base = quantise_rtn(weight, bits, group)
    lost = quantise_residual(weight - dequantise(base))
    return LowBitWeights(bits, group, base.codes, base.scale, base.zero, lost.codes, lost.scale)
