"""Safetensors files written from front to back: one matrix is in memory at a time."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from runtime.export.pieces import Contents, Piece, Pieces
from runtime.int8x.codecs import byte_view
from runtime.store import atomic
from runtime.store.oserrors import translated

SHARD_BYTES = 5 * 10**9
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_TYPE_NAMES = {
    torch.int64: "I64",
    torch.int32: "I32",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
}


def write_shards(
    folder: Path, contents: Contents, on_bytes: Callable[[int], None], shard_bytes: int = SHARD_BYTES
) -> list[str]:
    """Write every tensor into files of at most `shard_bytes` (one tensor may be larger); gives their names.

    `on_bytes` hears what was written, and may raise to stop. Several files get an index.
    """
    shards = _divided(contents.pieces.values(), shard_bytes)
    names = _file_names(len(shards))
    for name, shard in zip(names, shards, strict=True):
        _write(folder / name, shard, on_bytes)
    if len(shards) > 1:
        pairs = zip(names, shards, strict=True)
        places = {stored.name: file for file, shard in pairs for piece in shard for stored in piece.stored}
        index = {"metadata": {"total_size": contents.nbytes}, "weight_map": dict(sorted(places.items()))}
        atomic.write_json(folder / INDEX, index)
    return names


def _divided(units: Iterable[Pieces], limit: int) -> list[list[Piece]]:
    """Pieces by file, wide types first: so every tensor is aligned to its element size."""
    shards: list[list[Piece]] = [[]]
    size = 0
    for unit in units:
        grown = sum(piece.nbytes for piece in unit)
        if shards[-1] and size + grown > limit:
            shards.append([])
            size = 0
        shards[-1].extend(unit)
        size += grown
    return [sorted(shard, key=lambda piece: -piece.itemsize) for shard in shards]


def _file_names(count: int) -> list[str]:
    if count == 1:
        return [SINGLE]
    return [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]


def _write(path: Path, pieces: list[Piece], on_bytes: Callable[[int], None]) -> None:
    with translated(path, f"Writing {path.name}"), path.open("xb") as file:
        file.write(_header(pieces))
        for piece in pieces:
            for tensor in piece.make():
                file.write(byte_view(tensor))
                on_bytes(tensor.nbytes)
        file.flush()
        os.fsync(file.fileno())


def _header(pieces: list[Piece]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for stored in (stored for piece in pieces for stored in piece.stored):
        end = at + stored.nbytes
        dtype, shape = _TYPE_NAMES[stored.dtype], list(stored.shape)
        entries[stored.name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
