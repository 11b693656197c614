"""What a coded tensor takes, beside the floor of any such coder: entropy, Huffman, plain bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import torch

from kernels.int8x import Granularity, entropy_bits, histogram, huffman_bits
from runtime.int8x.entries import CodedEntry


class TensorReport(msgspec.Struct, frozen=True):
    """One coded tensor. Bits are per weight, tables and scales included; `share` is per level width."""

    name: str
    kind: str
    codec: str
    levels: tuple[int, ...]
    granularity: Granularity
    shape: tuple[int, int]
    weights: int
    share: dict[str, float]
    bits_per_weight: float
    entropy_bits_per_weight: float
    huffman_bits_per_weight: float


class GroupReport(msgspec.Struct, frozen=True):
    """Several tensors together, every weight counting once; `codecs` counts tensors by codec and levels."""

    kind: str
    tensors: int
    weights: int
    codecs: dict[str, int]
    share: dict[str, float]
    bits_per_weight: float
    entropy_bits_per_weight: float
    huffman_bits_per_weight: float


def kind_of(name: str) -> str:
    """The module a weight belongs to: q_proj, down_proj, embed_tokens, lm_head, …"""
    return name.removesuffix(".weight").rsplit(".", 1)[-1]


def is_decoder_linear(report: TensorReport) -> bool:
    """Whether a tensor is a linear layer of a decoder block, not an embedding or the output layer."""
    return ".layers." in report.name


def measure(name: str, entry: CodedEntry, q: torch.Tensor) -> TensorReport:
    """The report of one tensor from its decoded int8 weights."""
    counts = histogram(q)
    widths = entry.level_widths()
    share = {str(width): n / entry.weights for width, n in zip(widths, entry.level_counts(), strict=True)}
    return TensorReport(
        name=name,
        kind=kind_of(name),
        codec=str(entry.__struct_config__.tag),
        levels=widths,
        granularity=entry.granularity,
        shape=entry.shape,
        weights=entry.weights,
        share=share,
        bits_per_weight=entry.stored_bits / entry.weights,
        entropy_bits_per_weight=entropy_bits(counts),
        huffman_bits_per_weight=huffman_bits(counts),
    )


def combine(kind: str, reports: Sequence[TensorReport]) -> GroupReport:
    """Several tensors as one group; zeros for an empty one."""
    weights = sum(report.weights for report in reports)

    def mean(values: Iterable[float]) -> float:
        pairs = zip(values, reports, strict=True)
        return sum(value * report.weights for value, report in pairs) / max(weights, 1)

    widths = sorted({width for report in reports for width in report.share}, key=int)
    codecs = [f"{report.codec} ({','.join(map(str, report.levels))})" for report in reports]
    return GroupReport(
        kind=kind,
        tensors=len(reports),
        weights=weights,
        codecs={codec: codecs.count(codec) for codec in dict.fromkeys(codecs)},
        share={width: mean(report.share.get(width, 0.0) for report in reports) for width in widths},
        bits_per_weight=mean(report.bits_per_weight for report in reports),
        entropy_bits_per_weight=mean(report.entropy_bits_per_weight for report in reports),
        huffman_bits_per_weight=mean(report.huffman_bits_per_weight for report in reports),
    )


def by_kind(reports: Sequence[TensorReport]) -> list[GroupReport]:
    """One group per tensor kind, in the order in which they appear."""
    kinds = dict.fromkeys(report.kind for report in reports)
    return [combine(kind, [report for report in reports if report.kind == kind]) for kind in kinds]
