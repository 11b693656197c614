"""Shards: safetensors files of bounded size, written atomically, each describing its own tensors."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from runtime.checkpoint.files import damaged, read_bounded, read_object, shown
from runtime.int8x.codecs import byte_view
from runtime.int8x.config import AGAIN, tensor_error
from runtime.int8x.entries import Part
from runtime.store import atomic
from runtime.store.oserrors import translated

SHARD_BYTES = 256 << 20
MAX_HEADER_BYTES = 100 << 20
INDEX_NAME = "model.safetensors.index.json"
METADATA_KEY = "int8x"
_SHARD = re.compile(r"model-\d{5}\.safetensors")
_FILE_NAME = re.compile(r"\w[\w.-]*\.safetensors")
_TYPES = {
    "I8": torch.int8,
    "U8": torch.uint8,
    "U16": torch.uint16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
}
_TYPE_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def shard_name(number: int) -> str:
    """File name of shard `number`, counted from 1."""
    return f"model-{number:05d}.safetensors"


def write_shard(path: Path, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and their description, whole or not at all, without a second copy in memory."""
    # Wide types first keeps every tensor aligned to its element size.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize)
    with atomic.replacing(path) as file:
        file.write(_header(ordered, about))
        for _, tensor in ordered:
            file.write(byte_view(tensor))


def finished_shards(folder: Path) -> list[Path]:
    """Shards of an earlier run in order; leftovers of an interrupted write are removed."""
    with translated(folder, f"Looking for earlier work in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        found = sorted(folder.iterdir())
        for leftover in filter(atomic.is_temporary, found):
            leftover.unlink()
    return [path for path in found if _SHARD.fullmatch(path.name)]


def describe_shard(path: Path) -> tuple[list[str], dict[str, Any]]:
    """Stored names and description of a shard; an empty description if it cannot be trusted."""
    try:
        with safe_open(path, "pt") as shard:
            about = json.loads((shard.metadata() or {}).get(METADATA_KEY, "{}"))
            return list(shard.keys()), about if isinstance(about, dict) else {}
    except (OSError, SafetensorError, ValueError, RecursionError):
        return [], {}


def sum_files(folder: Path, shards: Iterable[str]) -> dict[str, int]:
    """CRC-32 of the index and of the headers of shards, by file name; streams have sums of their own."""
    sums = {shard: zlib.crc32(_read_header(folder / shard)) for shard in shards}
    return {INDEX_NAME: zlib.crc32(read_bounded(folder / INDEX_NAME)), **sums}


class ShardReader:
    """Streams by stored name, over all shards of a folder; nothing is read before it is asked for.

    `sums`: what `sum_files` said when the model was written. DecdecError for a damaged index or header.
    """

    def __init__(self, folder: Path, sums: Mapping[str, int]) -> None:
        self._folder, self._sums = folder, sums
        self._files = _weight_map(folder / INDEX_NAME)
        self._compare(INDEX_NAME, read_bounded(folder / INDEX_NAME))
        self._open: dict[str, Any] = {}

    def read(self, name: str, key: str, part: Part) -> torch.Tensor:
        """The stream `key` of tensor `name`; DecdecError unless its type and shape are those of `part`."""
        if key not in self._files:
            raise tensor_error(name, f"its stream {shown(key)} is missing")
        file = self._files[key]
        try:
            shard = self._shard(file)
            _check_part(name, key, part, shard.get_slice(key))
            tensor: torch.Tensor = shard.get_tensor(key)
        except (OSError, SafetensorError) as error:
            raise tensor_error(name, f"its file {file} cannot be read ({shown(str(error))})") from error
        return tensor

    def _shard(self, file: str) -> Any:
        if file not in self._open:
            shard = safe_open(self._folder / file, "pt")
            self._compare(file, _read_header(self._folder / file))
            self._open[file] = shard
        return self._open[file]

    def _compare(self, file: str, content: bytes) -> None:
        if self._sums.get(file) != zlib.crc32(content):
            raise damaged(self._folder / file, "its checksum does not match", AGAIN)


def _read_header(path: Path) -> bytes:
    with translated(path, f"Reading {path.name}"), path.open("rb") as file:
        length = file.read(8)
        return length + file.read(min(int.from_bytes(length, "little"), MAX_HEADER_BYTES))


def _header(tensors: list[tuple[str, torch.Tensor]], about: Mapping[str, Any]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"format": "pt", METADATA_KEY: json.dumps(about)}}
    at = 0
    for key, tensor in tensors:
        end = at + tensor.nbytes
        dtype = _TYPE_NAMES[tensor.dtype]
        entries[key] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _check_part(name: str, key: str, part: Part, stored: Any) -> None:
    shape, dtype = tuple(stored.get_shape()), _TYPES.get(stored.get_dtype())
    if (shape, dtype) != (part.shape, part.dtype):
        found, wanted = f"{stored.get_dtype()} {list(shape)}", f"{_TYPE_NAMES[part.dtype]} {list(part.shape)}"
        raise tensor_error(name, f"its stream {key} is {found} instead of {wanted}")


def _weight_map(path: Path) -> dict[str, str]:
    files = read_object(path).get("weight_map")
    if not isinstance(files, dict):
        raise damaged(path, "it has no weight_map")
    for file in files.values():
        if not isinstance(file, str) or not _FILE_NAME.fullmatch(file):
            raise damaged(path, f"{shown(repr(file))} is not the name of a file in the same folder")
    return files
