"""From int8 weights to the streams of the codec that makes them smallest."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from kernels.int8x import Granularity, encode, histogram
from kernels.int8x.levels import Levels, coded_bytes, level_counts
from runtime.int8x.entries import PLAIN_TYPES, BitmapEntry, CodedEntry, PlainEntry, RawEntry

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
    q: torch.Tensor, scale: torch.Tensor, granularity: Granularity, levels: Levels
) -> tuple[RawEntry | BitmapEntry, dict[str, torch.Tensor]]:
    """Entry and streams of int8 q [n_out, n_in]: bitmaps of `levels`, or raw bytes if not larger."""
    counts = level_counts(histogram(q), levels)
    parts = {"scale": scale}
    common: dict[str, Any] = {"shape": tuple(q.shape), "granularity": granularity, "sha256": digest(q)}
    if coded_bytes(counts, levels) >= q.numel():
        parts["raw"] = q
        return RawEntry(crc32=checksum(parts.values()), **common), parts
    parts |= _bitmap_parts(q, levels)
    entry = BitmapEntry(crc32=checksum(parts.values()), levels=levels, counts=counts, **common)
    return entry, parts


def recode(entry: CodedEntry, q: torch.Tensor, scale: torch.Tensor) -> Mapping[str, torch.Tensor]:
    """The streams that `entry`'s own codec makes of q, to compare with stored ones."""
    coded = {"raw": q} if isinstance(entry, RawEntry) else _bitmap_parts(q, entry.level_widths())
    return {"scale": scale} | coded


def code_plain(tensor: torch.Tensor) -> tuple[PlainEntry, dict[str, torch.Tensor]]:
    """Entry and stream of a tensor stored as it is; ValueError for types a container does not hold."""
    if tensor.dtype not in TYPE_NAMES:
        raise ValueError(f"its type {str(tensor.dtype).removeprefix('torch.')} cannot be stored")
    parts = {"": tensor.contiguous()}
    name = TYPE_NAMES[tensor.dtype]
    return PlainEntry(tuple(tensor.shape), name, checksum(parts.values())), parts


def _bitmap_parts(q: torch.Tensor, levels: Levels) -> dict[str, torch.Tensor]:
    streams = encode(q, levels)
    parts = {f"b{i}": part for i, part in enumerate(streams.bitmaps, 1)}
    parts |= {f"b{i}_blk": part for i, part in enumerate(streams.block_counts, 1)}
    return parts | {f"l{i}": part for i, part in enumerate(streams.codes, 1)}
