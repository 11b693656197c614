"""A prepared model with its real weights, loaded as the chat loads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime import store
from runtime.bench.decode.step_rows import POSITION, Known, Subject, step_rows
from runtime.bench.decode.stepping import Tables
from runtime.bench.table import Row
from runtime.engine.load import load_engine
from runtime.engine.slider import TunedPath
from runtime.progress import JobContext
from runtime.protocol.commands import LOSSLESS, Load


def prepared_rows(name: str, known: Known) -> Iterator[Row]:
    """Lossless, then each base that the model was prepared with, at the slider's positions where tuned."""
    record = store.find(name)
    for base in (LOSSLESS, *record.record.get("bases", [])):
        yield from _base_rows(record.name, base, known)


def _base_rows(name: str, base: str, known: Known) -> Iterator[Row]:
    loaded = load_engine(Load(name, base, 2 * POSITION), JobContext.silent())
    engine: Any = loaded.engine
    tables = Tables(TunedPath(loaded.loaded.path), {}) if loaded.loaded.path else None
    yield from step_rows(Subject(name, base, engine), tables, known)
