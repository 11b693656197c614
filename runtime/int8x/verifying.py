"""Proof that nothing was lost: every weight of every tensor is decoded and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from kernels.int8x import quantise
from runtime.checkpoint import Checkpoint, open_checkpoint
from runtime.int8x.codecs import digest, recode
from runtime.int8x.entries import CodedEntry
from runtime.int8x.origin import fingerprint
from runtime.int8x.reader import Int8xReader, decode_parts
from runtime.int8x.report import TensorReport, measure
from runtime.progress import JobContext

Compare = Callable[[str, torch.Tensor, torch.Tensor], int]


def survey(
    reader: Int8xReader, ctx: JobContext, step: str, visit: Compare | None = None
) -> tuple[list[TensorReport], int]:
    """Decode every coded tensor: its report, and the sum of what `visit(name, q, scale)` returns."""
    names = reader.coded_names()
    done, total = 0, sum(reader.coded_entry(name).weights for name in names)
    reports, found = [], 0
    for name in names:
        ctx.progress(step, done, total, "weights", name)
        q, scale = reader.quantised(name)
        reports.append(measure(name, reader.coded_entry(name), q))
        found += visit(name, q, scale) if visit else 0
        done += q.numel()
    ctx.progress(step, total, total, "weights")
    return reports, found


def comparison(reader: Int8xReader, source: Path | None) -> Compare:
    """How to count mismatching weights: against a fresh rounding of the source, or against what is stored."""
    if source is None:
        return lambda name, q, scale: against_streams(reader, name, q, scale)
    checkpoint = open_checkpoint(source)
    return lambda name, q, scale: against_source(reader.coded_entry(name), checkpoint, name, q, scale)


def against_source(
    entry: CodedEntry, checkpoint: Checkpoint, name: str, q: torch.Tensor, scale: torch.Tensor
) -> int:
    """Weights that differ from a fresh rounding of the source; all of them if shape or scale differs."""
    fresh, fresh_scale = quantise(checkpoint.load(name), entry.granularity)
    if fresh.shape != q.shape or not torch.equal(fresh_scale, scale):
        return q.numel()
    return int((fresh != q).sum())


def against_streams(reader: Int8xReader, name: str, q: torch.Tensor, scale: torch.Tensor) -> int:
    """0 if the weights have the hash taken before coding and code to the stored streams again, else all."""
    entry, stored = reader.coded_entry(name), reader.parts(name)
    again = recode(entry, decode_parts(name, entry, stored), scale)
    same = digest(q) == entry.sha256 and all(torch.equal(again[key], stored[key]) for key in stored)
    return 0 if same else q.numel()


def source_at_hand(reader: Int8xReader, candidate: str | None) -> Path | None:
    """A recorded source path if it still holds exactly what the model was coded from."""
    recorded = reader.config["quantization_config"].get("source")
    if not candidate or not recorded or not Path(candidate).exists():
        return None
    return Path(candidate) if fingerprint(Path(candidate)) == recorded else None
