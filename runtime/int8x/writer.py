"""Writing an INT8-X model: tensor by tensor, in bounded memory, resumable at every shard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

from kernels.int8x import Granularity, Quantised, Scales, absmax_scales, quantise
from kernels.int8x.levels import MAX_WEIGHTS
from runtime.errors import DecdecError
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix, code_plain
from runtime.int8x.config import FORMAT_VERSION, compose, parse_entry, seal, tensor_error
from runtime.int8x.entries import Entry, Rounding
from runtime.int8x.shards import (
    INDEX_NAME,
    SHARD_BYTES,
    describe_shard,
    finished_shards,
    shard_name,
    sum_files,
    write_shard,
)
from runtime.store import atomic

AUTO = CodecChoice()
_CODABLE = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def stored_key(name: str, suffix: str) -> str:
    """Name of a tensor's stream in the safetensors file."""
    return f"{name}.{suffix}" if suffix else name


class Int8xWriter:
    """Codes tensors into shards of `folder` (created if missing).

    Shards that an earlier run finished with the same granularity, choice of codecs, `quality` (what the
    model is made for, written down as it is) and `source` (see `origin.fingerprint`) are kept: ask `has`
    before loading a tensor. Other shards there are deleted.
    One tensor and one shard are in memory at a time; a tensor larger than `shard_bytes` gets its own shard.
    """

    def __init__(
        self,
        folder: Path,
        granularity: Granularity = "tensor",
        *,
        choice: CodecChoice = AUTO,
        source: str = "",
        quality: Mapping[str, Any] | None = None,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        self._folder, self._granularity, self._shard_bytes = folder, granularity, shard_bytes
        self._choice, self._source, self._quality = choice, source, dict(quality or {})
        self._recipe = {
            "version": FORMAT_VERSION,
            "granularity": granularity,
            **choice.describe(),
            "source": source,
            "quality": self._quality,
        }
        self._entries: dict[str, Entry] = {}
        self._files: dict[str, str] = {}
        self._pending: dict[str, torch.Tensor] = {}
        self._pending_bytes = 0
        self._flushed = 0
        self._number = 1
        self._resume()

    def has(self, name: str) -> bool:
        """Whether this tensor is done, here or in an earlier run."""
        return name in self._entries

    def add(self, name: str, weight: torch.Tensor, scales: Scales | Granularity | None = None) -> None:
        """Round and code a floating matrix [n_out, n_in].

        `scales`: as they are, or steps of absmax / 127 of that granularity; None: of the writer's.
        Raises DecdecError for NaN, infinities and other types, and for forced levels that cannot hold it.
        """
        if weight.dim() != 2 or weight.dtype not in _CODABLE or not 0 < weight.numel() <= MAX_WEIGHTS:
            kind = f"{str(weight.dtype).removeprefix('torch.')} {list(weight.shape)}"
            raise tensor_error(
                name, f"it is {kind}, not a floating-point matrix", "use a bf16, fp16 or fp32 model"
            )
        scales = scales or self._granularity
        try:
            known = scales if isinstance(scales, Scales) else absmax_scales(weight, scales)
            matrix = Quantised(quantise(weight, known), known)
        except ValueError as error:
            raise tensor_error(name, str(error), "use an undamaged copy of the model") from error
        self._code(name, matrix, "nearest")

    def add_quantised(self, name: str, q: torch.Tensor, scales: Scales) -> None:
        """Code int8 q [n_out, n_in] that `round_economically` made; DecdecError if it cannot be."""
        try:
            matrix = Quantised(q, scales)
        except ValueError as error:
            raise tensor_error(name, str(error), "report this as an error of the program") from error
        self._code(name, matrix, "economical")

    def add_plain(self, name: str, tensor: torch.Tensor) -> None:
        """Store a tensor as it is; DecdecError for types the container does not hold."""
        try:
            entry, parts = code_plain(tensor)
        except ValueError as error:
            raise tensor_error(name, str(error), "use a bf16, fp16 or fp32 model") from error
        self._store(name, entry, parts)

    def finish(self) -> dict[str, Any]:
        """Write the last shard and the index; returns the `quantization_config` for `config.json`."""
        self._flush()
        shards = sorted(set(self._files.values()))
        sizes = [(self._folder / file).stat().st_size for file in shards]
        index = {"metadata": {"total_size": sum(sizes)}, "weight_map": self._files}
        atomic.write_json(self._folder / INDEX_NAME, index)
        composed = compose(self._granularity, self._choice, self._source, self._entries)
        return seal({**composed, "quality": self._quality, "files": sum_files(self._folder, shards)})

    def _code(self, name: str, matrix: Quantised, rounding: Rounding) -> None:
        try:
            coded = code_matrix(matrix, self._choice, rounding)
        except ValueError as error:
            raise tensor_error(name, str(error), "choose other levels, or another codec") from error
        self._store(name, *coded)

    def _store(self, name: str, entry: Entry, parts: Mapping[str, torch.Tensor]) -> None:
        keys = {stored_key(name, suffix): part for suffix, part in parts.items()}
        if name in self._entries or any(key in self._files or key in self._pending for key in keys):
            raise tensor_error(
                name, "a tensor of this name was already stored", "use an undamaged copy of the model"
            )
        size = sum(part.nbytes for part in keys.values())
        if self._pending and self._pending_bytes + size > self._shard_bytes:
            self._flush()
        self._pending |= keys
        self._pending_bytes += size
        self._entries[name] = entry

    def _flush(self) -> None:
        if not self._pending:
            return
        file = shard_name(self._number)
        fresh = list(self._entries.items())[self._flushed :]
        entries = {name: msgspec.to_builtins(entry) for name, entry in fresh}
        write_shard(self._folder / file, self._pending, {"recipe": self._recipe, "entries": entries})
        self._files |= dict.fromkeys(self._pending, file)
        self._pending, self._pending_bytes = {}, 0
        self._flushed, self._number = len(self._entries), self._number + 1

    def _resume(self) -> None:
        for path in finished_shards(self._folder):
            if path.name != shard_name(self._number) or not self._adopt(path):
                path.unlink()
        self._flushed = len(self._entries)

    def _adopt(self, path: Path) -> bool:
        keys, about = describe_shard(path)
        entries = self._trusted(about, set(keys))
        self._entries |= entries
        self._files |= dict.fromkeys(_stored_keys(entries), path.name)
        self._number += bool(entries)
        return bool(entries)

    def _trusted(self, about: Mapping[str, Any], keys: set[str]) -> dict[str, Entry]:
        described = about.get("entries")
        if about.get("recipe") != self._recipe or not isinstance(described, dict):
            return {}
        try:
            entries = {name: parse_entry(name, content) for name, content in described.items()}
        except DecdecError:
            return {}
        return entries if keys == set(_stored_keys(entries)) else {}


def _stored_keys(entries: Mapping[str, Entry]) -> list[str]:
    return [stored_key(name, suffix) for name, entry in entries.items() for suffix in entry.layout()]
