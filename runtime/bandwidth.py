"""How fast weights can be read here, measured in less than a second: what the speed of answers hangs on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from kernels.cpu.products import int4_product, int8_product

# More than most caches hold, and written in a tenth of a second.
CPU_BYTES = 64 << 20
GPU_BYTES, LINK_BYTES = 256 << 20, 64 << 20
ROUNDS = 5
# Of one figure of a CPU, also where other programs keep it busy.
PATIENCE_S = 0.2
# A product as in a small model's blocks, whose weights come one matrix after the other.
N_OUT, N_IN, GROUP = 2048, 1024, 128


@dataclass(frozen=True, slots=True)
class CpuRates:
    """GB/s of plain reading, and of packed weights in the engine's 4- and 8-bit products."""

    memory: float
    int4: float
    int8: float


def cpu_rates() -> CpuRates:
    """Measured with as many threads as the engine uses."""
    octets = torch.ones(CPU_BYTES, dtype=torch.uint8)
    return CpuRates(
        memory=_best_gb_s([part.view(torch.int64).sum for part in octets.chunk(16)]),
        int4=_best_gb_s(_int4_products(octets)),
        int8=_best_gb_s(_int8_products(octets)),
    )


def gpu_gb_s(index: int) -> float:
    """What a CUDA device reads and writes of its own memory when it copies."""
    source = torch.ones(GPU_BYTES, dtype=torch.uint8, device=f"cuda:{index}")
    target = torch.empty_like(source)
    return 2 * _device_gb_s(GPU_BYTES, index, lambda: target.copy_(source))


def link_gb_s(index: int) -> float:
    """What a CUDA device is sent from page-locked host memory: the PCIe link."""
    source = torch.ones(LINK_BYTES, dtype=torch.uint8).pin_memory()
    target = torch.empty(LINK_BYTES, dtype=torch.uint8, device=f"cuda:{index}")
    return _device_gb_s(LINK_BYTES, index, lambda: target.copy_(source, non_blocking=True))


def _int4_products(octets: torch.Tensor) -> list[Callable[[], object]]:
    x = torch.ones(1, N_IN, dtype=torch.bfloat16)
    tables = torch.ones(N_IN // GROUP, N_OUT, 2, dtype=torch.bfloat16)
    matrices = octets.view(-1, N_OUT, N_IN // 2).unbind()
    return [partial(int4_product, x, matrix, GROUP, tables) for matrix in matrices]


def _int8_products(octets: torch.Tensor) -> list[Callable[[], object]]:
    x, scale = torch.ones(1, N_IN, dtype=torch.bfloat16), torch.ones(N_OUT, dtype=torch.bfloat16)
    matrices = octets.view(torch.int8).view(-1, N_OUT, N_IN).unbind()
    return [partial(int8_product, x, matrix, scale) for matrix in matrices]


@torch.inference_mode()
def _best_gb_s(parts: list[Callable[[], object]]) -> float:
    """GB/s of calls that read CPU_BYTES together, from the fastest: other programs only make calls slower."""
    parts[0]()
    until, times = time.perf_counter() + PATIENCE_S, []
    for work in parts * ROUNDS:
        times.append(_seconds(work))
        if time.perf_counter() > until:
            break
    return CPU_BYTES / len(parts) / min(times) / 1e9


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@torch.inference_mode()
def _device_gb_s(count: int, index: int, work: Callable[[], object]) -> float:
    """GB/s by the device's own clock."""
    with torch.cuda.device(index):
        work()
        return count / min(_device_seconds(work) for _ in range(ROUNDS)) / 1e9


def _device_seconds(work: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3
