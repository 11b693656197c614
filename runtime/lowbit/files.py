"""Safetensors files of our own making: every claim is checked before use, tensors by their checksum."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from runtime.checkpoint.files import shown
from runtime.errors import DecdecError
from runtime.store.atomic import replacing

FIX = "prepare the model again"
_LENGTH = struct.Struct("<Q")


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file whole or not at all, with a CRC-32 of every tensor in its metadata.

    Equal tensors and metadata give equal bytes.
    """
    sums = {f"crc32.{name}": str(_checksum(tensor)) for name, tensor in tensors.items()}
    content = memoryview(save(dict(tensors), {**metadata, **sums}))
    end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    with replacing(path) as file:
        file.write(_ordered(content[_LENGTH.size : end]))
        file.write(content[end:])


def _ordered(header: memoryview) -> bytes:
    """The length and text of a header: the library gives metadata another order in every run."""
    found = json.loads(bytes(header))
    found["__metadata__"] = dict(sorted(found["__metadata__"].items()))
    text = json.dumps(found, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH.size)
    return _LENGTH.pack(len(text)) + text


def _checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(tensor.contiguous().view(torch.uint8).numpy().data)


class BlockFile:
    """An open safetensors file; every getter raises DecdecError naming the file and the tensor or field."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> BlockFile:
        try:
            self._file: Any = safe_open(self.path, framework="pt").__enter__()
        except (OSError, SafetensorError) as error:
            why = "it is missing" if not self.path.exists() else shown(str(error))
            raise self.wrong(why) from error
        self._metadata: dict[str, str] = self._file.metadata() or {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def wrong(self, why: str) -> DecdecError:
        """The error for this file."""
        return DecdecError(f"File {self.path.name} in {self.path.parent} cannot be used", why, FIX)

    def expect(self, key: str, value: str) -> None:
        """Refuse the file unless a metadata field has this value."""
        if self._metadata.get(key) != value:
            raise self.wrong(f"its {key} is {self._metadata.get(key)!r}, not {value!r}")

    def text(self, key: str) -> str:
        """A field of the metadata; empty where it is missing."""
        return self._metadata.get(key, "")

    def pair(self, key: str, high: int) -> tuple[int, int]:
        """Two whole numbers of the metadata, each within 1..high."""
        parts = self._metadata.get(key, "").split()
        if len(parts) != 2:
            raise self.wrong(f"the shape of {key} is {self._metadata.get(key)!r}")
        return self.whole(key, parts[0], 1, high), self.whole(key, parts[1], 1, high)

    def names(self) -> list[str]:
        """Tensor names."""
        return list(self._file.keys())

    def tensor(self, name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        """A tensor that has exactly this type and shape; floating values must be finite."""
        if name not in self.names():
            raise self.wrong(f"tensor {name} is missing")
        found = tuple(self._file.get_slice(name).get_shape())
        if found != shape:
            raise self.wrong(f"tensor {name} has shape {list(found)} instead of {list(shape)}")
        tensor: torch.Tensor = self._file.get_tensor(name)
        if tensor.dtype != dtype:
            raise self.wrong(f"tensor {name} is {tensor.dtype}, not {dtype}")
        checksum = str(_checksum(tensor))
        if self._metadata.get(f"crc32.{name}", checksum) != checksum:
            raise self.wrong(f"the checksum of tensor {name} does not match, it is damaged")
        if dtype.is_floating_point and not torch.isfinite(tensor).all():
            raise self.wrong(f"tensor {name} holds a value that is not finite")
        return tensor

    def whole(self, key: str, text: str, low: int, high: int) -> int:
        """`text`, found under `key`, as a number within low..high."""
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise self.wrong(f"{key} is {text!r}, not a number within {low}..{high}")
        return int(text)
