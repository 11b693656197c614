"""From sensitivities to the shape of the steps: factors of rows and columns, and the step of unit noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.int8x.scales import Scales, factor_codes, factors
from runtime.sensitivity import Sensitivity

# Steps go with F^-1/4 of rows and of columns. Noise that every weight contributes equally to would need
# F^-1/2, but a row's width follows its integers while columns share theirs, and the estimate is noisy:
# of 0, 0.4, 0.5, 0.6, 0.75 and 1 times F^-1/2, half gave the least KL at equal size on SmolLM2.
EXPONENT = 0.25
# Added to sensitivities, as a share of their mean: nothing is trusted to be without any influence.
FLOOR = 0.02
LARGEST = 127.0
LARGEST_FACTOR = float(factors(torch.tensor([255], dtype=torch.uint8)))


@dataclass(frozen=True, slots=True)
class StepShape:
    """Steps of a fused linear up to one number: step[o, i] = noise * unit * rows[o] / columns[i].

    rows uint8 [n_out] and columns uint8 [n_in] are factor codes. `unit` makes the mean of F * step^2 over
    the weights equal noise^2, so one `noise` for all linears spends error where it costs least.
    """

    unit: float
    rows: torch.Tensor
    columns: torch.Tensor

    def scales(self, weight: torch.Tensor, rows: slice | torch.Tensor, noise: float) -> Scales:
        """Scales of a matrix made of these rows of the fused linear.

        Rows whose largest weight would not fit 127 steps get larger ones. ValueError for NaN and infinities.
        """
        reach = (weight.float().abs() * factors(self.columns)).amax(1) / LARGEST
        if not bool(torch.isfinite(reach).all()):
            raise ValueError("it holds values that are not finite numbers")
        step = max(noise * self.unit, float(reach.max()) / LARGEST_FACTOR, torch.finfo(torch.float32).tiny)
        scale = torch.tensor([step], dtype=torch.float32)
        return Scales("aware", scale, torch.maximum(self.rows[rows], _needed(reach / scale)), self.columns)


def step_shape(sensitivity: Sensitivity) -> StepShape:
    """The shape for one fused linear."""
    outputs, inputs = _floored(sensitivity.outputs), _floored(sensitivity.inputs)
    rows, columns = factor_codes(outputs**-EXPONENT), factor_codes(inputs**EXPONENT)
    mean = max(sensitivity.total / sensitivity.weights, torch.finfo(torch.float32).tiny)
    noise = (outputs * factors(rows).square()).mean() * (inputs / factors(columns).square()).mean()
    return StepShape(float((noise.double() * mean).rsqrt()), rows, columns)


def _floored(values: torch.Tensor) -> torch.Tensor:
    """Relative to their mean, the floor added, mean 1 again."""
    mean = values.double().mean()
    if mean <= 0:
        return torch.ones_like(values)
    return ((values / mean + FLOOR) / (1 + FLOOR)).float()


def _needed(ratio: torch.Tensor) -> torch.Tensor:
    """Codes of the smallest factors at or above positive ratios; 0 where the ratio is smaller than any."""
    codes = factor_codes(ratio.clamp(min=torch.finfo(torch.float32).tiny))
    short = (factors(codes) < ratio) & (codes < 255)
    return codes + short.to(torch.uint8)
