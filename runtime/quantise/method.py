"""What every way to make a low-bit base offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from runtime.layers.base import LinearKind
from runtime.lowbit import BaseWeights
from runtime.quantise.inputs import InputMoments


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fused linear stands in the model."""

    block: int
    kind: LinearKind


class Quantiser(Protocol):
    """Turns one fused linear after another into few bits; knows nothing but that linear and its inputs."""

    def quantise(
        self, place: Place, weight: torch.Tensor, inputs: InputMoments
    ) -> tuple[BaseWeights, torch.Tensor | None]:
        """(base of weight * columns, columns float32 [n_in] by which inputs are divided, or None).

        weight: float32 [n_out, n_in]. ValueError when it holds a value that is not finite.
        """
        ...
