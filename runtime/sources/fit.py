"""Whether a model fits a machine, in which form, and what is missing where it does not: arithmetic on shapes.

The engine plans to the byte when it loads; this is within some percent of it, before anything is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from runtime.sources.forecast import Mode, forecast, residual_bytes
from runtime.sources.shapes import ModelShape

Where = Literal["VRAM", "RAM", "disk"]
# Bases to offer, the best first, and the forecast that bounds each on a GPU. On a CPU all take the same room.
OFFERED: dict[str, Mode] = {"awq4": "low4", "int8x3": "low3"}
# Tokens of context that a model must have, and that a conversation should have.
SMALLEST_CONTEXT, COMFORTABLE_CONTEXT = 512, 4096
# On a GPU beside weights and cache: what the engine keeps free, and buffers.
WORK_BYTES = 360_000_000
# INT8-X linears as a GPU holds them, in bits a weight.
LOSSLESS_BITS = 6.0
# On a CPU, in bytes a weight: 4 bits with tables, residual, INT8; and what is there beside the model.
CPU_BASE, CPU_RESIDUAL, CPU_INT8, CPU_BESIDE = 0.6, 0.55, 1.0, 256 << 20
# Of a CPU's free memory the share that is left for the conversation.
CPU_CACHE_SHARE = 0.25
# Bytes a weight that preparing may write: INT8-X at its worst, and a base with its residual.
WRITTEN_INT8X, WRITTEN_BASE = 1.0, 1.1


@dataclass(frozen=True, slots=True)
class Room:
    """Free bytes. device: of the GPU that answers, None: answers come from the CPU. disk: None is unknown."""

    device: int | None
    host: int
    disk: int | None = None


@dataclass(frozen=True, slots=True)
class Lack:
    """What is missing where."""

    where: Where
    bytes: int


@dataclass(frozen=True, slots=True)
class Fit:
    """A model on a machine. base: the best that fits; lossless: its INT8 form fits beside it.

    memory: bytes where answers come from, with a comfortable context; host: in host memory beside a GPU.
    corrected: share of the blocks whose residual fits. lacks: empty where it fits; else base is the smallest.
    """

    base: str
    lossless: bool
    memory: int
    host: int
    disk: int
    corrected: float
    lacks: tuple[Lack, ...] = ()


def fit(shape: ModelShape, room: Room, download_bytes: int) -> Fit:
    """The best form of a model that fits, or the smallest with what is missing."""
    disk = download_bytes + written_bytes(shape)
    lacking = tuple(_lack("disk", disk, room.disk))
    if room.device is None:
        return _on_cpu(shape, room.host, disk, lacking)
    return _on_gpu(shape, room.device, room.host, disk, lacking)


def written_bytes(shape: ModelShape) -> int:
    """What preparing may write beside the download."""
    return int(shape.parameters * WRITTEN_INT8X + shape.linear_weights * WRITTEN_BASE)


def cache_bytes(shape: ModelShape, context: int) -> int:
    """A 16-bit KV cache of so many tokens."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * 2 * context


def gpu_bytes(shape: ModelShape, mode: Mode, context: int) -> int:
    """What an answer takes of a GPU."""
    return forecast(shape, mode).device.high + cache_bytes(shape, context) + WORK_BYTES


def cpu_bytes(shape: ModelShape, lossless: bool) -> int:
    """What an answer takes of host memory on a CPU, the conversation left out."""
    tables = shape.table_weights * (1 if shape.tied else 2)
    per_weight = CPU_BASE + CPU_RESIDUAL + (CPU_INT8 if lossless else 0.0)
    return int(tables + per_weight * shape.linear_weights) + CPU_BESIDE


def _on_cpu(shape: ModelShape, host: int, disk: int, lacking: tuple[Lack, ...]) -> Fit:
    needed = cpu_bytes(shape, lossless=False)
    lossless = cpu_bytes(shape, lossless=True) < host * (1 - CPU_CACHE_SHARE)
    memory = needed + cache_bytes(shape, COMFORTABLE_CONTEXT) * 2
    return Fit(next(iter(OFFERED)), lossless, memory, 0, disk, 1.0, (*_lack("RAM", needed, host), *lacking))


def _on_gpu(shape: ModelShape, device: int, host: int, disk: int, lacking: tuple[Lack, ...]) -> Fit:
    smallest = {base: gpu_bytes(shape, mode, SMALLEST_CONTEXT) for base, mode in OFFERED.items()}
    base = next((b for b, needed in smallest.items() if needed <= device), next(reversed(OFFERED)))
    memory = gpu_bytes(shape, OFFERED[base], COMFORTABLE_CONTEXT)
    exact, residual = int(shape.linear_weights * LOSSLESS_BITS / 8), residual_bytes(shape)
    table = forecast(shape, "low4").host.high - residual
    return Fit(
        base=base,
        lossless=memory + exact <= device,
        memory=memory,
        host=table + residual,
        disk=disk,
        corrected=min(1.0, max(0.0, (host - table) / residual)),
        lacks=(*_lack("VRAM", smallest[base], device), *_lack("RAM", table, host), *lacking),
    )


def _lack(where: Where, needed: int, free: int | None) -> Iterator[Lack]:
    if free is not None and needed > free:
        yield Lack(where, needed - free)
