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

# Steps follow weights, so noise is like sum(w^2 c^2) * sum(x^2 / c^2), which is least at c^2 ~ |x| / |w|.
EXPONENT = 0.5
# Added to mean squares, as a share of their mean: inputs that were never seen may come yet.
FLOOR = 1e-4
# Added to H's diagonal, as a share of its mean: thousands of tokens know H only roughly.
DAMPING = 0.01
SWEEPS = 2


@dataclass(frozen=True, slots=True)
class Awq:
    """bits: 3 or 4."""

    bits: int

    def quantise(
        self, place: Place, weight: torch.Tensor, inputs: InputMoments
    ) -> tuple[GroupCodes, torch.Tensor]:
        """(base of weight * columns, columns float32 [n_in]); weight float32 [n_out, n_in]."""
        columns = column_factors(inputs)
        scaled, moment = weight * columns, damped(inputs.second_moment(columns))
        base = quantise_clipped(scaled, moment.diagonal(), self.bits)
        return refine(scaled, moment, round_with_feedback(scaled, moment, base), SWEEPS), columns


def column_factors(inputs: InputMoments) -> torch.Tensor:
    """Factors float32 [n_in], positive, of geometric mean 1: columns that matter get finer steps."""
    mean = inputs.mean_square.mean()
    if mean <= 0:
        return torch.ones_like(inputs.mean_square)
    factors = (inputs.mean_square / mean + FLOOR) ** (EXPONENT / 2)
    return factors / factors.log().mean().exp()


def damped(moment: torch.Tensor) -> torch.Tensor:
    """The moment [n, n] made surely positive definite, in place."""
    mean = moment.diagonal().mean()
    moment.diagonal().add_(DAMPING * mean if mean > 0 else 1)
    return moment
