"""INT8-X as the base of a corrected model: integers of few bits, coded without loss.

Steps follow the Fisher information of rows and columns (`runtime.rate`), so column factors come with the
scales: the base stands for `W diag(columns)`, the layer divides its inputs by them, and corrected channels
are chosen among the divided inputs, where magnitude means influence on the output.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.int8x import Quantised
from runtime.checkpoint import Checkpoint
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.quantise.inputs import InputMoments
from runtime.quantise.method import Place
from runtime.rate import Kept, Rounder, make_rounder
from runtime.rate.rounder import Texts


@dataclass(frozen=True, slots=True)
class Int8xBase:
    """Makes the bases of one model's fused linears; `rounder` has a plan, its steps follow sensitivities."""

    rounder: Rounder

    def __post_init__(self) -> None:
        if self.rounder.plan is None:
            raise ValueError("a base needs steps by sensitivity")

    def quantise(
        self, place: Place, weight: torch.Tensor, inputs: InputMoments | None = None
    ) -> tuple[Quantised, torch.Tensor | None]:
        """Base of weight float32 [n_out, n_in] and its column factors float32 [n_in]; needs no inputs.

        ValueError for values that are not finite numbers.
        """
        matrix = self.rounder.round(place.block, place.kind, weight, 0)
        return matrix, matrix.scales.column_scale()


def int8x_base(
    checkpoint: Checkpoint, bits: float, texts: Texts, ctx: JobContext, kept: Kept | None = None
) -> Int8xBase:
    """The maker of a base of so many bits per weight, scales and tables of the coded form counted.

    Sensitivities are measured on `texts` unless `kept` has them; progress in blocks.
    """
    return Int8xBase(make_rounder(checkpoint, Quality(bits=bits), texts, ctx, kept))
