"""What a coded tensor takes, beside the floor of any such coder: entropy, Huffman, plain bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import torch

from kernels.int8x import Granularity, entropy_bits, histogram, huffman_bits
from runtime.int8x.entries import BitmapEntry, CodedEntry, Parts
from runtime.int8x.shares import spread_of


class TensorReport(msgspec.Struct, frozen=True):
    """One coded tensor. Bits are per weight, tables and scales included; share and widths: see `Spread`."""

    name: str
    kind: str
    codec: str
    levels: tuple[int, ...]
    granularity: Granularity
    shape: tuple[int, int]
    weights: int
    share: dict[str, float]
    mean_widths: dict[str, float]
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
    mean_widths: dict[str, float]
    bits_per_weight: float
    entropy_bits_per_weight: float
    huffman_bits_per_weight: float


def kind_of(name: str) -> str:
    """The module a weight belongs to: q_proj, down_proj, embed_tokens, lm_head, …"""
    return name.removesuffix(".weight").rsplit(".", 1)[-1]


def is_decoder_linear(report: TensorReport) -> bool:
    """Whether a tensor is a linear layer of a decoder block, not an embedding or the output layer."""
    return ".layers." in report.name


def measure(name: str, entry: CodedEntry, q: torch.Tensor, parts: Parts) -> TensorReport:
    """The report of one tensor from its decoded int8 weights and its streams."""
    counts, spread = histogram(q), spread_of(entry, parts)
    return TensorReport(
        name=name,
        kind=kind_of(name),
        codec=str(entry.__struct_config__.tag),
        levels=entry.levels if isinstance(entry, BitmapEntry) else (),
        granularity=entry.granularity,
        shape=entry.shape,
        weights=entry.weights,
        share=spread.share,
        mean_widths=spread.widths,
        bits_per_weight=entry.stored_bits / entry.weights,
        entropy_bits_per_weight=entropy_bits(counts),
        huffman_bits_per_weight=huffman_bits(counts),
    )


def codec_label(report: TensorReport) -> str:
    """Codec and levels as people read them."""
    levels = f" ({','.join(map(str, report.levels))})" if report.levels else ""
    return report.codec + levels


def combine(kind: str, reports: Sequence[TensorReport]) -> GroupReport:
    """Several tensors as one group; zeros for an empty one."""
    labels = [codec_label(report) for report in reports]
    return GroupReport(
        kind=kind,
        tensors=len(reports),
        weights=sum(report.weights for report in reports),
        codecs={label: labels.count(label) for label in dict.fromkeys(labels)},
        share=_shares(reports),
        mean_widths=_mean_widths(reports),
        bits_per_weight=_mean(reports, lambda report: report.bits_per_weight),
        entropy_bits_per_weight=_mean(reports, lambda report: report.entropy_bits_per_weight),
        huffman_bits_per_weight=_mean(reports, lambda report: report.huffman_bits_per_weight),
    )


def by_kind(reports: Sequence[TensorReport]) -> list[GroupReport]:
    """One group per tensor kind, in the order in which they appear."""
    kinds = dict.fromkeys(report.kind for report in reports)
    return [combine(kind, [report for report in reports if report.kind == kind]) for kind in kinds]


def _mean(reports: Sequence[TensorReport], value: Callable[[TensorReport], float]) -> float:
    weights = sum(report.weights for report in reports)
    return sum(value(report) * report.weights for report in reports) / max(weights, 1)


def _shares(reports: Sequence[TensorReport]) -> dict[str, float]:
    names = ["plane", "short", *map(str, range(1, 9)), "byte"]
    found = {name for report in reports for name in report.share}
    return {
        name: _mean(reports, lambda report, name=name: report.share.get(name, 0.0))  # type: ignore[misc]
        for name in names
        if name in found
    }


def _mean_widths(reports: Sequence[TensorReport]) -> dict[str, float]:
    """Plane codes count once a weight, short codes once an escaped weight that has one."""
    adaptive = [report for report in reports if report.mean_widths]
    shorts = [(report, report.weights * report.share["short"]) for report in adaptive]
    if not adaptive:
        return {}
    total = sum(count for _, count in shorts)
    return {
        "plane": _mean(adaptive, lambda report: report.mean_widths["plane"]),
        "short": sum(report.mean_widths["short"] * count for report, count in shorts) / max(total, 1),
    }
