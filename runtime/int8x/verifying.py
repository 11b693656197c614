"""Proof that nothing was lost: every weight of every tensor is decoded and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from kernels.int8x import Quantised, absmax_scales, quantise
from kernels.int8x.economical import round_economically
from runtime.checkpoint import open_checkpoint
from runtime.int8x.codecs import digest, recode
from runtime.int8x.entries import Rounding
from runtime.int8x.origin import fingerprint
from runtime.int8x.reader import Int8xReader, decode_parts
from runtime.int8x.report import TensorReport, measure
from runtime.progress import JobContext

Compare = Callable[[str, Quantised], int]


def survey(
    reader: Int8xReader, ctx: JobContext, step: str, visit: Compare | None = None
) -> tuple[list[TensorReport], int]:
    """Decode every coded tensor: its report, and the sum of what `visit(name, matrix)` returns."""
    names = reader.coded_names()
    done, total = 0, sum(reader.coded_entry(name).weights for name in names)
    reports, found = [], 0
    for name in names:
        ctx.progress(step, done, total, "weights", name)
        entry, parts = reader.coded_entry(name), reader.parts(name)
        matrix = decode_parts(name, entry, parts)
        reports.append(measure(name, entry, matrix.q, parts))
        found += visit(name, matrix) if visit else 0
        done += matrix.q.numel()
    ctx.progress(step, total, total, "weights")
    return reports, found


def comparison(reader: Int8xReader, source: Path | None) -> Compare:
    """How to count mismatching weights: against a fresh rounding of the source, or against what is stored."""
    if source is None:
        return lambda name, matrix: against_streams(reader, name, matrix)
    checkpoint = open_checkpoint(source)
    return lambda name, matrix: against_source(
        checkpoint.load(name), matrix, reader.coded_entry(name).rounding
    )


def against_source(weight: torch.Tensor, matrix: Quantised, rounding: Rounding = "nearest") -> int:
    """Weights that differ from a fresh rounding; all of them if shape or scales differ.

    Scales are taken from the weights again where they follow from them; aware ones are taken as stored.
    """
    q, scales = matrix.q, matrix.scales
    if weight.shape != q.shape:
        return q.numel()
    fresh = scales if scales.granularity == "aware" else absmax_scales(weight, scales.granularity)
    if not fresh.same_as(scales):
        return q.numel()
    again = quantise if rounding == "nearest" else round_economically
    return int((again(weight, scales) != q).sum())


def against_streams(reader: Int8xReader, name: str, matrix: Quantised) -> int:
    """0 if the weights have the hash taken before coding and code to the stored streams again, else all."""
    entry, stored = reader.coded_entry(name), reader.parts(name)
    again = recode(entry, matrix)
    same = digest(matrix.q) == entry.sha256 and all(torch.equal(again[key], stored[key]) for key in stored)
    return 0 if same else matrix.q.numel()


def source_at_hand(reader: Int8xReader, candidate: str | None) -> Path | None:
    """A recorded source path if it still holds exactly what the model was coded from."""
    recorded = reader.config["quantization_config"].get("source")
    if not candidate or not recorded or not Path(candidate).exists():
        return None
    return Path(candidate) if fingerprint(Path(candidate)) == recorded else None
