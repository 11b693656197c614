"""Rounding of a model's linears as a quality asks: what encoding and evaluation share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch

from kernels.int8x import Quantised, absmax_scales, quantise
from kernels.int8x.economical import round_economically
from runtime import sensitivity
from runtime.checkpoint import Checkpoint
from runtime.layers.base import LinearKind
from runtime.model import weights
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.protocol.quality import Quality
from runtime.rate.plan import StepPlan, make_plan
from runtime.rate.sample import take_samples

Texts = Callable[[], list[torch.Tensor]]

# Index, headers and config.json of a coded model: a bound for planning, in bytes per tensor and in all.
TENSOR_BYTES, FILE_BYTES = 1024, 1 << 16
PLAIN_BYTES = 4


@dataclass(frozen=True, slots=True)
class Rounder:
    """Rounds the matrices of decoder linears; `plan` is there where steps follow sensitivities."""

    quality: Quality
    plan: StepPlan | None = None

    def round(self, block: int, kind: LinearKind, weight: torch.Tensor, first_row: int) -> Quantised:
        """The matrix [n_out, n_in] that holds rows `first_row` and on of a linear.

        ValueError for NaN and infinities.
        """
        if self.plan is None:
            scales = absmax_scales(weight, self.quality.granularity)
            return Quantised(quantise(weight, scales), scales)
        scales = self.plan.scales(block, kind, weight, first_row)
        return Quantised(round_economically(weight, scales), scales)


@dataclass(frozen=True, slots=True)
class Kept:
    """Where sensitivities are kept for a resumed run, and the fingerprint of the weights they belong to."""

    folder: Path
    source: str


def make_rounder(
    checkpoint: Checkpoint, quality: Quality, texts: Texts, ctx: JobContext, kept: Kept | None = None
) -> Rounder:
    """The rounder for a wish; measures sensitivities on `texts` (int64 [T] each) where it needs them.

    Progress in blocks. Raises DecdecError for impossible sizes.
    """
    if quality.granularity != "aware":
        return Rounder(quality)
    model = SourceModel(checkpoint)
    measured = sensitivities(model, texts, ctx, kept)
    other = other_bytes(checkpoint, model.spec)
    return Rounder(quality, make_plan(measured, quality, lambda: take_samples(model, ctx), other))


def other_bytes(checkpoint: Checkpoint, spec: ModelSpec) -> int:
    """A bound on the bytes of everything that is no decoder linear: a byte per entry of a table."""
    linears = set(weights.linear_names(spec))
    names = checkpoint.names()
    shapes = [checkpoint.shape(name) for name in names if name not in linears]
    entries = sum(prod(shape) + PLAIN_BYTES * shape[0] if len(shape) == 2 else 0 for shape in shapes)
    plain = sum(PLAIN_BYTES * prod(shape) for shape in shapes if len(shape) != 2)
    return entries + plain + TENSOR_BYTES * len(names) + FILE_BYTES


def sensitivities(
    model: SourceModel, texts: Texts, ctx: JobContext, kept: Kept | None
) -> list[sensitivity.BlockSensitivity]:
    """Those of a model's linears: kept ones of the same weights, else measured on `texts`, and kept."""
    if kept is None:
        return sensitivity.measure(model, texts(), ctx)
    known = sensitivity.read_sensitivities(kept.folder, len(model.spec.layers), kept.source)
    if known is None:
        known = sensitivity.measure(model, texts(), ctx)
        sensitivity.write_sensitivities(kept.folder, known, kept.source)
    return known
