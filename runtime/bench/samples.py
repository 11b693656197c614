"""Which weights the tables are made of: a real model's, and random ones of real models' shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch

from kernels.int8x import Quantised, histogram
from runtime.bench.coding import Matrix
from runtime.bench.mixture import paper_mixture
from runtime.bench.shapes import ModelShape
from runtime.calibration.prompts import checkpoint_texts
from runtime.checkpoint import open_checkpoint
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_places
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.rate import make_rounder
from runtime.rate.rounder import Kept

FLOAT_BITS = 32
# Enough for three digits of every size; rows beyond it would only take time.
SAMPLE_ROWS = 512
# Blocks are left out beyond so many weights, evenly.
MOST_WEIGHTS = 130_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Weights under one name. `all_weights` is what the model has, `note` what was drawn of it."""

    name: str
    real: bool
    matrices: list[Matrix]
    all_weights: int
    note: str

    @property
    def drawn(self) -> int:
        """Weights really there."""
        return sum(matrix.q.numel() for matrix in self.matrices)

    def mean(self, bits: Callable[[torch.Tensor], float]) -> float:
        """Mean over matrices of bits per weight, every weight counting once."""
        counts = [matrix.q.numel() * matrix.represents for matrix in self.matrices]
        values = [bits(matrix.q) for matrix in self.matrices]
        return sum(n * value for n, value in zip(counts, values, strict=True)) / sum(counts)

    @property
    def histogram(self) -> torch.Tensor:
        """Occurrences of q + 128 by int64 [256], every matrix as often as it stands for others."""
        counts = [histogram(matrix.q).double() * matrix.represents for matrix in self.matrices]
        return torch.stack(counts).sum(0).round().long()


def random_sample(shape: ModelShape, rows: int = SAMPLE_ROWS) -> Sample:
    """Rows of each fused linear at the paper's shares; they stand for all blocks."""
    matrices = []
    for seed, (kind, (n_out, n_in)) in enumerate(shape.linears.items()):
        drawn = min(rows, n_out)
        q = paper_mixture().draw(drawn, n_in, seed=seed)
        # One scale a matrix, of which a sample has its share.
        represents = shape.blocks * n_out / drawn
        matrices.append(Matrix(kind, q, round(FLOAT_BITS * drawn / n_out), represents))
    total = sum(matrix.q.numel() for matrix in matrices)
    part = f"{total / 1e6:.1f} M of {shape.linear_weights / 1e6:.0f} M drawn"
    note = f"random weights at the paper's shares, {part}"
    return Sample(f"{shape.name} shapes", False, matrices, shape.linear_weights, note)


def real_sample(path: Path, name: str, quality: Quality, ctx: JobContext, kept: Kept | None = None) -> Sample:
    """Decoder linears of a checkpoint, rounded as `quality` asks; evenly spaced blocks of a large model.

    `kept`: where sensitivities stay for the next quality. Progress "round" in tensors.
    """
    checkpoint = open_checkpoint(path)
    places = linear_places(ModelSpec.from_config(checkpoint.config), checkpoint.shape)
    total = sum(prod(checkpoint.shape(tensor)) for tensor in places)
    every = -(-total // MOST_WEIGHTS)
    chosen = {tensor: place for tensor, place in places.items() if place[0] % every == 0}
    rounder = make_rounder(checkpoint, quality, lambda: checkpoint_texts(checkpoint), ctx, kept)
    matrices: list[Matrix] = []
    for tensor, (block, kind, first_row) in chosen.items():
        ctx.progress("round", len(matrices), len(chosen), "tensors", tensor)
        coded = rounder.round(block, kind, checkpoint.load(tensor), first_row)
        matrices.append(Matrix(tensor, coded.q, scale_bits(coded)))
    drawn = sum(matrix.q.numel() for matrix in matrices)
    part = "all" if every == 1 else f"{drawn / 1e6:.1f} M of"
    note = f"{part} {total / 1e6:.1f} M weights of the decoder's linears, {quality.describe()}"
    return Sample(name, True, matrices, total, note)


def scale_bits(matrix: Quantised) -> int:
    """Bits of a matrix's scales and factors."""
    return 8 * sum(part.nbytes for part in matrix.scales.parts().values())


def middle_block(path: Path) -> list[torch.Tensor]:
    """Float matrices of the linears of a checkpoint's middle block, as they are stored."""
    checkpoint = open_checkpoint(path)
    spec = ModelSpec.from_config(checkpoint.config)
    places = linear_places(spec, checkpoint.shape)
    wanted = [name for name, place in places.items() if place[0] == len(spec.layers) // 2]
    return [checkpoint.load(name) for name in wanted]
