"""One number for the whole model: the noise that a wish for bits, quality or size comes down to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from kernels.int8x.scales import Scales
from runtime.errors import DecdecError
from runtime.layers.base import LinearKind
from runtime.protocol.quality import MAX_BITS, MIN_BITS, Quality
from runtime.rate.factors import StepShape, step_shape
from runtime.rate.sample import Sample
from runtime.sensitivity.fisher import BlockSensitivity

CLOSE_ENOUGH_BITS = 0.003
TRIES = 12
# Rounding to a step disturbs evenly within half a step, a variance of step^2 / 12, and KL takes half of
# sensitivity times variance.
KL_PER_STEP2 = 1 / 24


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Steps of every linear: shapes by block and kind, and the noise they are scaled with."""

    shapes: list[dict[LinearKind, StepShape]]
    noise: float
    predicted_kl: float

    def scales(self, block: int, kind: LinearKind, weight: torch.Tensor, first_row: int) -> Scales:
        """Scales of the matrix that holds rows `first_row` and on of a fused linear."""
        rows = slice(first_row, first_row + len(weight))
        return self.shapes[block][kind].scales(weight, rows, self.noise)


def make_plan(
    sensitivities: Sequence[BlockSensitivity],
    quality: Quality,
    samples: Callable[[], list[Sample]],
    other_bytes: int,
) -> StepPlan:
    """The plan for a wish. `samples` is asked only where bits count; `other_bytes`: what is no linear.

    Raises DecdecError for a size that cannot be reached.
    """
    shapes = [{kind: step_shape(one) for kind, one in block.items()} for block in sensitivities]
    weights = sum(one.weights for block in sensitivities for one in block.values())
    wish = quality.wish
    if wish.kl is not None:
        noise = math.sqrt(wish.kl / KL_PER_STEP2 / weights)
    else:
        bits = wish.bits if wish.bits is not None else _bits_for(wish.bytes or 0, other_bytes, weights)
        noise = noise_for_bits(shapes, samples(), bits)
    return StepPlan(shapes, noise, KL_PER_STEP2 * noise**2 * weights)


def noise_for_bits(
    shapes: Sequence[dict[LinearKind, StepShape]], samples: Sequence[Sample], bits: float
) -> float:
    """The noise at which the samples take `bits` per weight: twice the noise is about one bit less."""
    noise = 0.01
    for _ in range(TRIES):
        reached = bits_at(shapes, samples, noise)
        if abs(reached - bits) <= CLOSE_ENOUGH_BITS:
            break
        noise *= 2 ** (reached - bits)
    return noise


def bits_at(shapes: Sequence[dict[LinearKind, StepShape]], samples: Sequence[Sample], noise: float) -> float:
    """Estimated bits per weight of all linears at a noise."""
    coded = sum(sample.coded_bits(shapes[sample.block][sample.kind], noise) for sample in samples)
    return coded / sum(sample.weights for sample in samples)


def _bits_for(size: int, other_bytes: int, weights: int) -> float:
    bits = 8 * (size - other_bytes) / weights
    if bits < MIN_BITS:
        smallest = other_bytes + MIN_BITS * weights / 8
        raise DecdecError(
            f"The model does not fit {size / 1e6:.0f} MB",
            f"embeddings, norms and tables take {other_bytes / 1e6:.0f} MB, and linears need {MIN_BITS} bits"
            " per weight at the least",
            f"ask for {smallest / 1e6:.0f} MB or more",
        )
    return min(bits, MAX_BITS)
