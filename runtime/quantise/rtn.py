"""Round to nearest: the instant base, which asks nothing of the inputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.dec import GroupCodes, quantise_rtn
from runtime.quantise.inputs import InputMoments
from runtime.quantise.method import Place


@dataclass(frozen=True, slots=True)
class Rtn:
    """Groups of 128 from their least to their largest weight; bits 3 or 4."""

    bits: int

    def quantise(self, place: Place, weight: torch.Tensor, inputs: InputMoments) -> tuple[GroupCodes, None]:
        """The base of weight float32 [n_out, n_in], without column factors."""
        return quantise_rtn(weight, self.bits), None
