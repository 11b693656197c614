"""Typed, bounded access to a GGUF's metadata; every error names the key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.checkpoint.files import damaged, shown

MAX_INTEGER = 1 << 26


@dataclass(frozen=True, slots=True)
class GgufFields:
    """Metadata of one file. Keys of the architecture are given without its prefix, by the `own_…` methods."""

    path: Path
    metadata: dict[str, Any]
    architecture: str

    def text(self, key: str) -> str | None:
        """A text, or None if the key is missing."""
        value = self.metadata.get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, value)
        return value

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, or None if the key is missing."""
        return self._list(key, str)

    def integers(self, key: str) -> list[int] | None:
        """A list of integers, or None if the key is missing."""
        return self._list(key, int)

    def reals(self, key: str) -> list[float] | None:
        """A list of numbers, or None if the key is missing."""
        return self._list(key, float)

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        value = self.metadata.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, value)
        return value

    def integer(self, key: str, low: int = 0) -> int | None:
        """An integer in [low, MAX_INTEGER], or None if the key is missing."""
        value = self.metadata.get(key)
        if value is None:
            return None
        if type(value) is not int or not low <= value <= MAX_INTEGER:
            raise self._wrong(key, value)
        return value

    def real(self, key: str) -> float | None:
        """A finite number, or None if the key is missing."""
        value = self.metadata.get(key)
        if value is None:
            return None
        if type(value) not in (int, float) or not math.isfinite(value):
            raise self._wrong(key, value)
        return float(value)

    def own_integer(self, key: str, default: int | None = None) -> int:
        """A positive integer of the architecture; without a default the key must be there."""
        value = self.integer(f"{self.architecture}.{key}", low=1)
        return self._present(key, default if value is None else value)

    def own_real(self, key: str, default: float | None = None) -> float:
        """A positive number of the architecture; without a default the key must be there."""
        value = self.real(f"{self.architecture}.{key}")
        if value is not None and value <= 0:
            raise self._wrong(f"{self.architecture}.{key}", value)
        return self._present(key, default if value is None else value)

    def own_text(self, key: str) -> str | None:
        """A text of the architecture."""
        return self.text(f"{self.architecture}.{key}")

    def has_own(self, key: str) -> bool:
        """Whether the architecture states the key."""
        return f"{self.architecture}.{key}" in self.metadata

    def _list(self, key: str, kind: type) -> list[Any] | None:
        value = self.metadata.get(key)
        if value is not None and not (isinstance(value, list) and all(type(item) is kind for item in value)):
            raise self._wrong(key, value)
        return value

    def _present(self, key: str, value: Any) -> Any:
        if value is None:
            raise damaged(
                self.path, f"its metadata lacks {self.architecture}.{key}", "use another GGUF of the model"
            )
        return value

    def _wrong(self, key: str, value: Any) -> Exception:
        return damaged(
            self.path, f"its metadata {shown(key)} is {shown(repr(value))}", "use another GGUF of the model"
        )
