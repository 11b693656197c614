"""Header of a GGUF file, read with bounds on everything it claims.

Format (github.com/ggml-org/ggml/blob/master/docs/gguf.md): magic, version, tensor count, key count, metadata,
tensor table (name, dims fastest first, type, offset), then the data, aligned to `general.alignment`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from runtime.checkpoint.files import damaged, file_size, refuse_pointer, shown, unreadable
from runtime.checkpoint.gguf_cursor import GgufCursor

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_HEADER_BYTES = 64 << 20
MAX_TENSORS = 1 << 16
MAX_KEYS = 1 << 16
MAX_DIMS = 4
MAX_ALIGNMENT = 1 << 16
DEFAULT_ALIGNMENT = 32
# Smallest possible entries, to judge counts by the size of the file: a key with an empty name and one byte, a
# tensor with an empty name and one dimension.
MIN_KEY_BYTES = 8 + 4 + 1
MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor: shape in torch's order, storage type, and where its bytes are in the file."""

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    start: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata by key, tensors by GGUF name in the table's order."""

    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


def read_header(path: Path) -> GgufHeader:
    """The checked header; raises DecdecError naming the field or tensor that is wrong."""
    size = file_size(path)
    try:
        with path.open("rb") as file:
            refuse_pointer(path, file.read(64))
            file.seek(0)
            return _read(GgufCursor(path, file, min(size, MAX_HEADER_BYTES)), size)
    except OSError as error:
        raise unreadable(path, error) from error


def _read(cursor: GgufCursor, size: int) -> GgufHeader:
    _check_magic(cursor)
    n_tensors = _count(cursor, "tensors", MAX_TENSORS, MIN_TENSOR_BYTES, size)
    n_keys = _count(cursor, "metadata keys", MAX_KEYS, MIN_KEY_BYTES, size)
    metadata = _metadata(cursor, n_keys)
    alignment = _alignment(cursor.path, metadata)
    table = [_entry(cursor) for _ in range(n_tensors)]
    data_start = -(-cursor.position // alignment) * alignment
    tensors = [GgufTensor(t.name, t.shape, t.kind, data_start + t.start, t.n_bytes) for t in table]
    _check_layout(cursor.path, tensors, alignment, size)
    return GgufHeader(metadata, {tensor.name: tensor for tensor in tensors})


def _check_magic(cursor: GgufCursor) -> None:
    if cursor.take(4) != MAGIC:
        raise damaged(cursor.path, "it is not a GGUF file")
    version = cursor.u32()
    if version not in VERSIONS:
        raise damaged(
            cursor.path,
            f"it has GGUF version {version}, only 2 and 3 can be read",
            "use a current little-endian GGUF",
        )


def _count(cursor: GgufCursor, what: str, most: int, least_bytes: int, size: int) -> int:
    count = cursor.u64()
    if count > most or count * least_bytes > size:
        raise damaged(cursor.path, f"it claims {count} {what} in {size} bytes")
    return count


def _metadata(cursor: GgufCursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for index in range(count):
        cursor.field = f"metadata key {index}"
        key = cursor.text()
        if key in metadata:
            raise damaged(cursor.path, f"metadata {shown(key)} is there twice")
        cursor.field = f"metadata {shown(key)}"
        metadata[key] = cursor.value(cursor.u32())
    return metadata


def _alignment(path: Path, metadata: dict[str, Any]) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(value) is not int or not 1 <= value <= MAX_ALIGNMENT or value & (value - 1):
        raise damaged(path, f"general.alignment is {shown(str(value))}")
    return value


def _entry(cursor: GgufCursor) -> GgufTensor:
    """A tensor of the table; `start` is still relative to the data."""
    cursor.field = "the tensor table"
    name = cursor.text()
    cursor.field = f"tensor {shown(name)}"
    n_dims = cursor.u32()
    if not 1 <= n_dims <= MAX_DIMS:
        raise damaged(cursor.path, f"{cursor.field} has {n_dims} dimensions")
    shape = tuple(cursor.u64() for _ in range(n_dims))[::-1]
    kind = _kind(cursor, cursor.u32())
    return GgufTensor(name, shape, kind, cursor.u64(), _bytes(cursor, shape, kind))


def _kind(cursor: GgufCursor, code: int) -> GGMLQuantizationType:
    try:
        return GGMLQuantizationType(code)
    except ValueError:
        raise damaged(
            cursor.path, f"{cursor.field} has the unknown type {code}", "use another GGUF"
        ) from None


def _bytes(cursor: GgufCursor, shape: tuple[int, ...], kind: GGMLQuantizationType) -> int:
    block, block_bytes = GGML_QUANT_SIZES[kind]
    if 0 in shape or shape[-1] % block:
        raise damaged(cursor.path, f"{cursor.field} of type {kind.name} has the impossible shape {shape}")
    return math.prod(shape) // block * block_bytes


def _check_layout(path: Path, tensors: list[GgufTensor], alignment: int, size: int) -> None:
    end = 0
    for tensor in sorted(tensors, key=lambda t: t.start):
        name = shown(tensor.name)
        if tensor.start % alignment:
            raise damaged(
                path, f"tensor {name} starts at byte {tensor.start}, not at a multiple of {alignment}"
            )
        if tensor.start < end:
            raise damaged(path, f"tensor {name} overlaps another")
        end = tensor.start + tensor.n_bytes
        if end > size:
            raise damaged(
                path, f"tensor {name} ends at byte {end}, the file at {size}: it is cut off or damaged"
            )
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise damaged(path, "two of its tensors have the same name")
