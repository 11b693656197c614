"""Reading an INT8-X model: every stream is checked before it is decoded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch

from kernels.int8x import Quantised, Scales
from runtime.checkpoint.files import read_object, shown
from runtime.errors import DecdecError
from runtime.int8x.codecs import checksum
from runtime.int8x.config import file_sums, parse, tensor_error
from runtime.int8x.entries import CodedEntry, Entry, PlainEntry
from runtime.int8x.shards import ShardReader
from runtime.int8x.writer import stored_key

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "chat_template.jinja",
)


class Int8xReader:
    """An INT8-X model folder; satisfies the Checkpoint protocol (`load` dequantises to float32).

    Opening reads `config.json` and the index only. Every access checks shapes, checksum, popcounts and
    running counts of that tensor first and raises DecdecError with its name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, Any] = read_object(folder / "config.json")
        self._entries = parse(self.config, folder)
        self._shards = ShardReader(folder, file_sums(self.config, folder))

    def names(self) -> list[str]:
        """All tensor names in stored order."""
        return list(self._entries)

    def coded_names(self) -> list[str]:
        """Names of the tensors kept as INT8-X."""
        return [name for name, entry in self._entries.items() if isinstance(entry, CodedEntry)]

    def entry(self, name: str) -> Entry:
        """Codec, shape and counts of a tensor."""
        if name not in self._entries:
            raise DecdecError(f"{self.folder} holds no tensor {shown(name)}")
        return self._entries[name]

    def coded_entry(self, name: str) -> CodedEntry:
        """The entry of a tensor kept as INT8-X."""
        entry = self.entry(name)
        if not isinstance(entry, CodedEntry):
            raise DecdecError(f"Tensor {name} is stored plain", "only matrices are kept as INT8-X")
        return entry

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape without reading data."""
        return self.entry(name).shape

    def parts(self, name: str) -> dict[str, torch.Tensor]:
        """A tensor's stored streams by suffix, layout and checksum verified."""
        entry = self.entry(name)
        parts = {
            suffix: self._shards.read(name, stored_key(name, suffix), part)
            for suffix, part in entry.layout().items()
        }
        if checksum(parts.values()) != entry.crc32:
            raise tensor_error(name, "its checksum does not match, the file is damaged")
        return parts

    def scales(self, name: str) -> Scales:
        """A coded tensor's scales without its weights; unlike `quantised`, its checksum is not compared."""
        entry = self.coded_entry(name)
        layout = entry.layout()
        parts = {
            suffix: self._shards.read(name, stored_key(name, suffix), layout[suffix])
            for suffix in ("scale", *entry.factors)
        }
        try:
            return entry.scales(parts)
        except ValueError as error:
            raise tensor_error(name, str(error)) from error

    def quantised(self, name: str) -> Quantised:
        """The INT8 weights q [n_out, n_in] and their scales."""
        return decode_parts(name, self.coded_entry(name), self.parts(name))

    def plain(self, name: str) -> torch.Tensor:
        """A tensor that was stored as it is, in its own type."""
        if not isinstance(self.entry(name), PlainEntry):
            raise DecdecError(f"Tensor {name} is not stored plain", "it is kept as INT8-X")
        return self.parts(name)[""]

    def load(self, name: str) -> torch.Tensor:
        """A tensor dequantised to float32, or as stored if it is plain."""
        if isinstance(self.entry(name), PlainEntry):
            return self.plain(name)
        return self.quantised(name).dequantise()

    def write_tokenizer(self, folder: Path) -> None:
        """Copy tokenizer, generation settings and chat template."""
        for file in TOKENIZER_FILES:
            if (self.folder / file).is_file():
                shutil.copyfile(self.folder / file, folder / file)


def decode_parts(name: str, entry: CodedEntry, parts: dict[str, torch.Tensor]) -> Quantised:
    """A matrix from its streams; DecdecError naming the tensor if they contradict each other."""
    try:
        return Quantised(entry.decode(parts), entry.scales(parts))
    except ValueError as error:
        raise tensor_error(name, str(error)) from error
