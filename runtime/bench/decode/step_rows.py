"""Rows about the decode steps of one engine, beside what else was measured in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from runtime.bench.decode.stepping import StepEngine, Tables, added_ms, driven_tokens_per_s, step_ms
from runtime.bench.table import Row
from runtime.layers.base import LINEAR_KINDS
from runtime.protocol.events import KChunk

if TYPE_CHECKING:
    # It needs triton, which a CPU has no use for.
    from runtime.engine.gpu.model import DeviceModel

POSITION = 512
SLIDER = (0.0, 2.5, 5.0, 10.0, 20.0)
_GB = 1e9


@dataclass(slots=True)
class Known:
    """What rows are compared with: the device's ceiling and link in GB/s, and milliseconds by model."""

    ceiling_gb_s: float | None = None
    link_gb_s: float | None = None
    bf16_ms: dict[str, float] = field(default_factory=dict)
    eager_ms: dict[str, float] = field(default_factory=dict)

    def beside(self, model: str, ms: float, read: float | None) -> Row:
        """Ratios of speeds, and the share of the ceiling that `read` bytes in `ms` are."""
        rate = None if read is None or self.ceiling_gb_s is None else read / (1e6 * ms) / self.ceiling_gb_s
        return {
            "x bf16": _ratio(self.bf16_ms.get(model), ms),
            "x eager": _ratio(self.eager_ms.get(model), ms),
            "GB read": None if read is None else read / _GB,
            "of ceiling": rate,
        }


@dataclass(frozen=True, slots=True)
class Subject:
    """An engine under test. read: bytes of device memory that a step at POSITION reads, None: unknown.

    before: bytes allocated on the device that do not belong to it.
    """

    model: str
    weights: str
    engine: StepEngine
    read: float | None = None
    before: int = 0


def bytes_read(model: DeviceModel, position: int, kv_bits: int = 16) -> int:
    """Bytes of device memory that a step reads: weights, norms, and keys and values of `position` tokens."""
    from kernels.gpu.attention.cache import cache_bytes_per_token

    spec, ropes = model.spec, sum(table.nbytes for pair in model.ropes for table in pair)
    cached = cache_bytes_per_token(len(model.blocks), spec.n_kv_heads, spec.head_dim, kv_bits)
    return model.bytes_on_device() - ropes + position * cached


def step_rows(subject: Subject, tables: Tables | None, known: Known) -> Iterator[Row]:
    """Without correction, and, where there are tables, at the slider's positions.

    Milliseconds are of the whole step on the device; driven: with the host asking for every token.
    """
    engine = subject.engine
    for pct in SLIDER if tables else SLIDER[:1]:
        table = tables.path.at(pct) if tables else KChunk()
        base, ms = _measured(engine, table)
        engine.set_slowdown(pct, False)
        yield {
            "model": subject.model,
            "weights": subject.weights,
            "slider": f"{pct:g} %" if tables else "-",
            "k_chunk": described(table),
            "ms": ms,
            "tokens/s": 1e3 / ms,
            "driven": driven_tokens_per_s(engine, POSITION),
            "slowdown %": 100 * (ms - base) / base if tables else None,
            **known.beside(subject.model, ms, subject.read),
            **device_gb(subject.before),
        }


def _measured(engine: StepEngine, table: KChunk) -> tuple[float, float]:
    """Milliseconds of a step without correction, and with the table."""
    if table.total == 0:
        engine.set_k_chunk(table)
        ms = step_ms(engine, POSITION)
        return ms, ms
    added, base = added_ms(engine, table, POSITION)
    return base, base + added


def context_rows(subject: Subject, positions: Sequence[int], read: Callable[[int], int]) -> Iterator[Row]:
    """Steps at several places in the context, without correction; `read`: bytes that such a step reads."""
    subject.engine.set_k_chunk(KChunk())
    for position in positions:
        ms = step_ms(subject.engine, position)
        row = {"model": subject.model, "weights": subject.weights, "context": position, "ms": ms}
        yield {**row, "tokens/s": 1e3 / ms, "GB read": read(position) / _GB}


def kernel_rows(subject: Subject, tables: Tables | None) -> Iterator[Row]:
    """Kernels of a step without correction, and with all kinds corrected; nothing should be timed later."""
    row = {"model": subject.model, "weights": subject.weights}
    for corrected in (False, True) if tables else (False,):
        subject.engine.set_k_chunk(KChunk(8, 8, 8, 8) if corrected else KChunk())
        yield {**row, "corrected": corrected, "kernels": subject.engine.kernels_per_token()}


def described(table: KChunk) -> str:
    """A table in a cell."""
    return ", ".join(f"{kind} {getattr(table, kind)}" for kind in LINEAR_KINDS) if table.total else "-"


def device_gb(before: int = 0) -> Mapping[str, float | None]:
    """GB allocated on the device now, and the most since the peak was last reset, without `before` bytes."""
    if not torch.cuda.is_available():
        return {"GB": None, "GB peak": None}
    now, peak = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    return {"GB": (now - before) / _GB, "GB peak": (peak - before) / _GB}


def _ratio(other: float | None, ms: float) -> float | None:
    return None if other is None else other / ms
