"""Reads little-endian GGUF values one after another and never past a limit."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from gguf.constants import GGUFValueType

from runtime.checkpoint.files import damaged, shown

MAX_STRING_BYTES = 32 << 20
MAX_ARRAY_ITEMS = 1 << 22

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_SCALARS: dict[int, str] = {
    GGUFValueType.UINT8: "<u1", GGUFValueType.INT8: "<i1", GGUFValueType.BOOL: "<u1",
    GGUFValueType.UINT16: "<u2", GGUFValueType.INT16: "<i2",
    GGUFValueType.UINT32: "<u4", GGUFValueType.INT32: "<i4", GGUFValueType.FLOAT32: "<f4",
    GGUFValueType.UINT64: "<u8", GGUFValueType.INT64: "<i8", GGUFValueType.FLOAT64: "<f8",
}  # fmt: skip


class GgufCursor:
    """A position in a GGUF header. `field` names what is being read, for messages."""

    def __init__(self, path: Path, file: BinaryIO, limit: int) -> None:
        self.path, self.position, self.field = path, 0, "header"
        self._file, self._limit = file, limit

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        data = self._file.read(count) if count <= self._limit - self.position else b""
        if len(data) != count:
            left = self._limit - self.position
            raise damaged(
                self.path, f"{self.field} at byte {self.position} needs {count} bytes of {left} left"
            )
        self.position += count
        return data

    def u32(self) -> int:
        """An unsigned 32-bit integer."""
        value: int = _U32.unpack(self.take(4))[0]
        return value

    def u64(self) -> int:
        """An unsigned 64-bit integer."""
        value: int = _U64.unpack(self.take(8))[0]
        return value

    def text(self) -> str:
        """A length-prefixed UTF-8 string."""
        length = self.u64()
        if length > MAX_STRING_BYTES:
            raise damaged(self.path, f"{self.field} claims to be a text of {length} bytes")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise damaged(self.path, f"{self.field} is not UTF-8 text") from error

    def value(self, kind: int) -> Any:
        """A metadata value of a GGUF value type: int, float, bool, str, or a list of one of them."""
        if kind == GGUFValueType.ARRAY:
            return self._array()
        if kind == GGUFValueType.STRING:
            return self.text()
        return self._scalars(kind, 1)[0]

    def _array(self) -> list[Any]:
        kind, count = self.u32(), self.u64()
        if count > MAX_ARRAY_ITEMS:
            raise damaged(self.path, f"{self.field} claims to be a list of {count} items")
        if kind == GGUFValueType.STRING:
            return [self.text() for _ in range(count)]
        return self._scalars(kind, count)

    def _scalars(self, kind: int, count: int) -> list[Any]:
        layout = _SCALARS.get(kind)
        if layout is None:
            raise damaged(self.path, f"{shown(self.field)} has the unknown type {kind}")
        numbers = np.frombuffer(self.take(count * np.dtype(layout).itemsize), layout)
        return (numbers != 0).tolist() if kind == GGUFValueType.BOOL else numbers.tolist()
