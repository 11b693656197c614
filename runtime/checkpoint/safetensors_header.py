"""Header of a safetensors file, validated before any library sees the file.

Format (github.com/huggingface/safetensors): u64 little-endian header length, that many bytes of JSON
`{name: {"dtype", "shape", "data_offsets"}, "__metadata__": {…}}`, then the data without holes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.checkpoint.files import damaged, file_size, parse_object, refuse_pointer, shown, unreadable

MAX_HEADER_BYTES = 100_000_000
MAX_DIMS = 8
MAX_ITEMS = 1 << 48
LENGTH_BYTES = 8

ITEM_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
FLOAT_DTYPES = frozenset({"F32", "F16", "BF16"})


@dataclass(frozen=True, slots=True)
class SafetensorsEntry:
    """One tensor: its dtype as the format spells it, its shape, and bytes `[begin, end)` of the data part."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(path: Path) -> dict[str, SafetensorsEntry]:
    """Every tensor of the file in file order; raises DecdecError naming the tensor that is wrong."""
    size = file_size(path)
    raw = _read_raw(path, size)
    header = parse_object(path, raw)
    header.pop("__metadata__", None)
    entries = sorted(
        (_entry(path, name, value) for name, value in header.items()), key=lambda e: (e.begin, e.end)
    )
    _check_layout(path, entries, size - LENGTH_BYTES - len(raw))
    return {entry.name: entry for entry in entries}


def _read_raw(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(64)
            refuse_pointer(path, head)
            length = int.from_bytes(head[:LENGTH_BYTES], "little")
            if size < LENGTH_BYTES or length > min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
                raise damaged(path, f"its header claims {length} bytes, the file has {size}")
            file.seek(LENGTH_BYTES)
            raw = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(raw) != length or not raw.startswith(b"{"):
        raise damaged(path, "it is not a safetensors file")
    return raw


def _entry(path: Path, name: str, value: Any) -> SafetensorsEntry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise damaged(path, f"the header's entry of tensor {shown(name)} is malformed")
    shape, offsets, dtype = value["shape"], value["data_offsets"], value["dtype"]
    if not _counts(shape, MAX_DIMS) or not _counts(offsets, 2) or len(offsets) != 2:
        raise damaged(path, f"shape or offsets of tensor {shown(name)} are malformed")
    entry = SafetensorsEntry(name, str(dtype), tuple(shape), offsets[0], offsets[1])
    _check_bytes(path, entry)
    return entry


def _counts(value: Any, most: int) -> bool:
    """Whether `value` is a list of at most `most` non-negative integers (JSON true is no integer)."""
    return isinstance(value, list) and len(value) <= most and all(type(v) is int and v >= 0 for v in value)


def _check_bytes(path: Path, entry: SafetensorsEntry) -> None:
    item = ITEM_BYTES.get(entry.dtype)
    if item is None:
        raise damaged(
            path,
            f"tensor {shown(entry.name)} has the type {shown(entry.dtype)}, which cannot be read",
            "use a checkpoint with bfloat16, float16 or float32 weights",
        )
    expected, found = math.prod(entry.shape) * item, entry.end - entry.begin
    if expected != found:
        raise damaged(
            path, f"tensor {shown(entry.name)} should have {expected} bytes, its offsets span {found}"
        )
    # No strides can be computed for such a shape, though a dimension of 0 leaves no bytes.
    if math.prod(n or 1 for n in entry.shape) > MAX_ITEMS:
        raise damaged(path, f"tensor {shown(entry.name)} has the impossible shape {list(entry.shape)}")


def _check_layout(path: Path, entries: list[SafetensorsEntry], data_bytes: int) -> None:
    """Tensors must fill the data part one after another: no overlap, no hole, nothing missing or over."""
    position = 0
    for entry in entries:
        if entry.end > data_bytes:
            missing = entry.end - data_bytes
            raise damaged(
                path, f"the file is cut off: tensor {shown(entry.name)} ends {missing} bytes behind its end"
            )
        if entry.begin != position:
            raise damaged(
                path, f"tensor {shown(entry.name)} overlaps its neighbour or leaves a hole before it"
            )
        position = entry.end
    if position != data_bytes:
        raise damaged(path, f"{data_bytes - position} bytes belong to no tensor")
