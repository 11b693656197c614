"""Activation-aware group codes: column factors, clipped ranges, rounding with feedback, refinement.

The loss of a base is tr(E H E'), E = W' - base and H the second moment of the scaled inputs. AWQ (Lin et
al. 2024) searches column factors and clips for it; feedback and refinement choose the codes themselves by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.dec import GroupCodes, quantise_clipped, refine, round_with_feedback
from runtime.quantise.inputs import InputMoments
from runtime.quantise.method import Place

# Steps follow weights, so noise is like sum(w^2 c^2) * sum(x^2 / c^2), which is least at c^2 ~ |x| / |w|: 0.5
# for rounding to nearest. Where codes are chosen by H, smaller factors lose less.
EXPONENT = 0.3
# Added to mean squares, as a share of their mean: inputs that were never seen may come yet.
FLOOR = 1e-4
# Added to H's diagonal, as a share of its mean. Thousands of tokens know the correlations of as many inputs
# only roughly, and what fits them too closely loses on any other text.
DAMPING = 1.0
SWEEPS = 2
# What counts, in equal shares: the loss with so many channels per 1024 corrected.
K_CHUNKS = (0, 32)


@dataclass(frozen=True, slots=True)
class Awq:
    """bits: 3 or 4."""

    bits: int

    def quantise(
        self, place: Place, weight: torch.Tensor, inputs: InputMoments
    ) -> tuple[GroupCodes, torch.Tensor]:
        """(base of weight * columns, columns float32 [n_in]); weight float32 [n_out, n_in]."""
        columns = column_factors(inputs)
        scaled, moment = weight * columns, mixed_moment(inputs, columns)
        base = quantise_clipped(scaled, moment.diagonal(), self.bits)
        return refine(scaled, moment, round_with_feedback(scaled, moment, base), SWEEPS), columns


def mixed_moment(inputs: InputMoments, columns: torch.Tensor) -> torch.Tensor:
    """H float32 [n_in, n_in] of divided inputs, half of them with the largest channels corrected; damped."""
    moment = inputs.second_moment(columns, K_CHUNKS)
    mean = moment.diagonal().mean()
    moment.diagonal().add_(DAMPING * mean if mean > 0 else 1)
    return moment


def column_factors(inputs: InputMoments) -> torch.Tensor:
    """Factors float32 [n_in], positive, of geometric mean 1: columns that matter get finer steps."""
    mean = inputs.mean_square.mean()
    if mean <= 0:
        return torch.ones_like(inputs.mean_square)
    factors = (inputs.mean_square / mean + FLOOR) ** (EXPONENT / 2)
    return factors / factors.log().mean().exp()
