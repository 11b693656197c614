"""Engines of random models, one at a time: built, measured, and gone from the device again."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import Any

import torch

from runtime.bench.decode import stepping
from runtime.bench.decode.random_model import Mode, Shared, make_shared, random_device_model
from runtime.bench.decode.step_rows import POSITION, Subject, bytes_read
from runtime.bench.decode.stepping import StepEngine, Tables
from runtime.bench.shapes import ModelShape
from runtime.engine.gpu.model import DeviceModel
from runtime.engine.slider import TunedPath
from runtime.protocol.events import KChunk, SlowdownPoint

CONTEXT = 4096
# A head of so many rows is compiled for as one of any larger vocabulary.
_ENOUGH_ROWS = 24_576
_WARM_PROMPT, _WARM_TOKENS = 300, 4
_ANY_TABLE = Tables(
    TunedPath([SlowdownPoint(0.0, KChunk()), SlowdownPoint(1.0, KChunk(8, 8, 8, 8))]), fetching={}
)


@dataclass(frozen=True, slots=True)
class Built:
    """A model, its engine, and both as a subject of measurements."""

    model: DeviceModel
    engine: StepEngine
    subject: Subject


class Builder:
    """Makes models; keeps what those of the last shape share."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._shape: ModelShape | None = None
        self._shared: Shared | None = None

    def build(
        self,
        shape: ModelShape,
        mode: Mode,
        tables: Tables | None = None,
        context: int = CONTEXT,
        **options: Any,
    ) -> Built:
        """An engine, with `options` of `stepping.new_engine`. Whoever keeps it keeps its memory: it goes when
        the caller's last reference does.
        """
        release()
        shared = self._shared_by(shape)
        before = _allocated() - shared.device_bytes(mode)
        model = random_device_model(shape, mode, context, self._device, shared)
        _reset_peak()
        engine = stepping.new_engine(model, tables, **options)
        read = bytes_read(model, POSITION, options.get("kv_bits", 16))
        return Built(model, engine, Subject(shape.name, mode.name, engine, read, before))

    def _shared_by(self, shape: ModelShape) -> Shared:
        if self._shared is None or self._shape != shape:
            self._shared = None
            release()
            self._shape, self._shared = shape, make_shared(shape, self._device)
        return self._shared


def compile_kernels(shape: ModelShape, mode: Mode, device: torch.device) -> None:
    """Run a shallow model of the shape once: kernels do not depend on depth and vocabulary."""
    small = replace(shape, blocks=1, vocabulary=min(shape.vocabulary, _ENOUGH_ROWS))
    engine = Builder(device).build(small, mode, _ANY_TABLE if mode.corrected else None).engine
    stepping.fill(engine, _WARM_PROMPT)
    for pct in (0.0, 1.0):
        engine.set_slowdown(pct, False)
        stepping.answer_seconds(engine, _WARM_PROMPT, _WARM_TOKENS)


def release() -> None:
    """Give back what nothing holds any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _allocated() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def _reset_peak() -> None:
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
