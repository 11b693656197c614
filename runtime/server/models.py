"""Which models can be asked for: those that are prepared, with the base that this server computes with."""

from __future__ import annotations

from typing import Any

from runtime import store
from runtime.protocol.commands import LOSSLESS
from runtime.protocol.events import Loaded
from runtime.server.errors import ApiError
from runtime.server.replies import model_document

DEFAULT = "default"
MAX_NAME_SHOWN = 100


class Models:
    """`first`: the model that "default" stands for."""

    def __init__(self, first: str, base: str) -> None:
        self._first, self._base = first, base

    def documents(self, loaded: Loaded | None) -> list[dict[str, Any]]:
        """The list, by name. Raises DecdecError when it cannot be read."""
        return [_document(record, loaded) for record in self._records()]

    def document(self, wanted: str, loaded: Loaded | None) -> dict[str, Any]:
        """One entry; raises ApiError (404) where there is none."""
        name = self.named(wanted)
        found = [record for record in self._records() if record.name == name]
        if not found:
            raise self._unknown(wanted)
        return _document(found[0], loaded)

    def named(self, wanted: str | None) -> str:
        """The model's own name; nothing and "default" mean the first one. Raises ApiError (404)."""
        if not wanted or wanted.lower() in (DEFAULT, self._first.lower()):
            return self._first
        for record in self._records():
            if record.name.lower() == wanted.lower():
                return record.name
        raise self._unknown(wanted)

    def _records(self) -> list[store.ModelRecord]:
        return [record for record in store.models() if self._fits(record)]

    def _fits(self, record: store.ModelRecord) -> bool:
        return self._base == LOSSLESS or self._base in record.record.get("bases", [])

    def _unknown(self, wanted: str) -> ApiError:
        sentence = (
            f"There is no model {wanted[:MAX_NAME_SHOWN]!r} here with the base {self._base}:"
            " GET /v1/models lists what can be asked for, and decdec-chat pull gets more."
        )
        return ApiError(404, sentence, "model_not_found", "model")


def _document(record: store.ModelRecord, loaded: Loaded | None) -> dict[str, Any]:
    return model_document(record.name, record.path.stat().st_mtime, record.bytes, loaded)
