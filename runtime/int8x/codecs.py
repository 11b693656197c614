"""From int8 weights to stored streams, and the sums that prove them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from kernels.int8x import AdaptivePlan, AdaptiveStreams, Quantised, encode, encode_adaptive, histogram
from kernels.int8x.levels import Levels, level_counts
from runtime.int8x.choice import CodecChoice
from runtime.int8x.entries import (
    PLAIN_TYPES,
    AdaptiveEntry,
    BitmapEntry,
    Coded,
    CodedEntry,
    PlainEntry,
    RawEntry,
    Rounding,
)

TYPE_NAMES = {dtype: name for name, dtype in PLAIN_TYPES.items()}


def byte_view(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous tensor of any type, without a copy."""
    if not tensor.numel():
        return memoryview(b"")
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data


def checksum(parts: Iterable[torch.Tensor]) -> int:
    """CRC-32 over the bytes of all parts, in order."""
    crc = 0
    for part in parts:
        crc = zlib.crc32(byte_view(part), crc)
    return crc


def digest(q: torch.Tensor) -> str:
    """SHA-256 of the int8 weights, row by row."""
    return hashlib.sha256(byte_view(q)).hexdigest()


def code_matrix(
    matrix: Quantised, choice: CodecChoice, rounding: Rounding = "nearest"
) -> tuple[Coded, dict[str, torch.Tensor]]:
    """Entry and streams of a matrix; ValueError if forced levels cannot hold it."""
    q, scales = matrix.q.contiguous(), matrix.scales
    form = choice.form(q)
    kind, fields, streams = _coded(q, form)
    parts = scales.parts() | streams
    entry = kind(
        shape=(q.shape[0], q.shape[1]),
        granularity=scales.granularity,
        factors=scales.factor_names,
        rounding=rounding,
        crc32=checksum(parts.values()),
        sha256=digest(q),
        **fields,
    )
    return entry, parts


def recode(entry: CodedEntry, matrix: Quantised) -> Mapping[str, torch.Tensor]:
    """What `entry`'s own codec makes of the matrix, to compare with what is stored."""
    if isinstance(entry, BitmapEntry):
        streams = _bitmap_parts(matrix.q, entry.levels)
    elif isinstance(entry, AdaptiveEntry):
        streams = encode_adaptive(matrix.q).parts
    else:
        streams = {"raw": matrix.q}
    return matrix.scales.parts() | streams


def code_plain(tensor: torch.Tensor) -> tuple[PlainEntry, dict[str, torch.Tensor]]:
    """Entry and stream of a tensor stored as it is; ValueError for types a container does not hold."""
    if tensor.dtype not in TYPE_NAMES:
        raise ValueError(f"its type {str(tensor.dtype).removeprefix('torch.')} cannot be stored")
    parts = {"": tensor.contiguous()}
    name = TYPE_NAMES[tensor.dtype]
    return PlainEntry(tuple(tensor.shape), name, checksum(parts.values())), parts


def _coded(
    q: torch.Tensor, form: AdaptivePlan | Levels | None
) -> tuple[type[Coded], dict[str, Any], dict[str, torch.Tensor]]:
    """Type of the entry, its own fields, and the streams."""
    if form is None:
        return RawEntry, {}, {"raw": q}
    if isinstance(form, AdaptivePlan):
        streams = encode_adaptive(q, form)
        return AdaptiveEntry, _lengths(streams), streams.parts
    return BitmapEntry, {"levels": form, "counts": level_counts(histogram(q), form)}, _bitmap_parts(q, form)


def _lengths(streams: AdaptiveStreams) -> dict[str, Any]:
    lengths = {name: streams.parts[name].numel() for name in ("plane", "short", "tail")}
    return lengths | {"counts": str(streams.short_counts.dtype).removeprefix("torch.")}


def _bitmap_parts(q: torch.Tensor, levels: Levels) -> dict[str, torch.Tensor]:
    streams = encode(q, levels)
    parts = {f"b{i}": part for i, part in enumerate(streams.bitmaps, 1)}
    parts |= {f"b{i}_blk": part for i, part in enumerate(streams.block_counts, 1)}
    return parts | {f"l{i}": part for i, part in enumerate(streams.codes, 1)}
