"""A base of which some decoder blocks have 3 bits and others 4."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.dec import GroupCodes, TableCodes
from runtime.quantise.allocation import FEW
from runtime.quantise.inputs import InputMoments
from runtime.quantise.method import Place, Quantiser


@dataclass(frozen=True, slots=True)
class Mixed:
    """Takes `few` or `many` as `bits` says of each block (`runtime.quantise.allocation.allocate`)."""

    bits: tuple[int, ...]
    few: Quantiser
    many: Quantiser

    def quantise(
        self, place: Place, weight: torch.Tensor, inputs: InputMoments
    ) -> tuple[GroupCodes | TableCodes, torch.Tensor | None]:
        """As the block's own quantiser does it."""
        chosen = self.few if self.bits[place.block] == FEW else self.many
        return chosen.quantise(place, weight, inputs)
