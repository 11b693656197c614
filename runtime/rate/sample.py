"""What a rate costs, found on some rows of every matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.int8x.adaptive import plan_adaptive
from kernels.int8x.adaptive_streams import GROUP_ROWS
from kernels.int8x.economical import round_economically
from runtime.layers.base import LinearKind
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.rate.factors import StepShape

ROWS = 4 * GROUP_ROWS
# Per matrix: permutation and row factors a row, widths and two counts a group, a factor a column, one step.
ROW_BITS, GROUP_BITS, COLUMN_BITS, MATRIX_BITS = 16 + 8, 8 + 2 * 16, 8, 32


@dataclass(frozen=True, slots=True)
class Sample:
    """Evenly spaced rows of one matrix: weight float32 [rows, n_in], their places in the fused linear."""

    block: int
    kind: LinearKind
    weight: torch.Tensor
    places: torch.Tensor
    n_out: int

    @property
    def weights(self) -> int:
        """Weights of the whole matrix."""
        return self.n_out * self.weight.shape[1]

    def coded_bits(self, shape: StepShape, noise: float) -> float:
        """Estimated bits of the whole matrix at a noise, tables and factors counted."""
        scales = shape.scales(self.weight, self.places, noise)
        layout = plan_adaptive(round_economically(self.weight, scales)).layout()
        words = int(layout.plane_starts[-1]) + int(layout.short_starts[-1])
        streams = (32 * words + 8 * int(layout.tail_starts[-1])) * self.n_out / len(self.weight)
        groups = -(-self.n_out // GROUP_ROWS)
        tables = ROW_BITS * self.n_out + GROUP_BITS * groups + COLUMN_BITS * self.weight.shape[1]
        return streams + tables + MATRIX_BITS


def take_samples(model: SourceModel, ctx: JobContext) -> list[Sample]:
    """Samples of every matrix of every block's linears; progress in blocks."""
    samples: list[Sample] = []
    count = len(model.spec.layers)
    for index in range(count):
        ctx.progress("sample", index, count, "blocks")
        for kind, parts in model.parts(index).items():
            first = 0
            for part in parts:
                samples.append(_sample(index, kind, part, first))
                first += len(part)
    ctx.progress("sample", count, count, "blocks")
    return samples


def _sample(block: int, kind: LinearKind, part: torch.Tensor, first: int) -> Sample:
    rows = torch.linspace(0, len(part) - 1, min(ROWS, len(part))).round().long()
    return Sample(block, kind, part[rows].clone(), rows + first, len(part))
