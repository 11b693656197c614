"""SqueezeLLM, its dense part: every output row gets a table of its own, weighted k-means of its weights.

Source: Kim et al. 2024. An error is weighed by what it does to the output: by the Fisher information of every
weight as in the paper, or by the mean square of the weight's input, which is the same under the assumption
that all outputs matter alike at all tokens. On SmolLM2 with a few thousand tokens to calibrate on the second
is better (docs/quantisation.md): F of a single weight rests on the few tokens with a large gradient.
Columns are not scaled: k-means already lays its entries where weights matter, and factors spread the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from kernels.dec import TableCodes
from kernels.dec.kmeans import quantise_table
from runtime.quantise.inputs import InputMoments
from runtime.quantise.method import Place

Weighting = Literal["inputs", "fisher"]


@dataclass(frozen=True, slots=True)
class SqueezeLLM:
    """Tables of 3 or 4 bits. `fisher`: gives F float32 [n_out, n_in] of a linear's weights, or its sums over
    rows [n_in] (`runtime.sensitivity`); without it the inputs' second moment weighs errors.
    """

    bits: int
    fisher: Callable[[Place], torch.Tensor] | None = None

    @property
    def weighting(self) -> Weighting:
        """What errors are weighed by."""
        return "inputs" if self.fisher is None else "fisher"

    def quantise(self, place: Place, weight: torch.Tensor, inputs: InputMoments) -> tuple[TableCodes, None]:
        """The base of weight float32 [n_out, n_in], columns as they are. ValueError for values not finite."""
        importance = inputs.mean_square if self.fisher is None else self.fisher(place)
        return quantise_table(weight, importance, self.bits), None
