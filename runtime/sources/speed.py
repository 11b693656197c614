"""How fast a model will write here: its bytes per token over what the machine was measured to read."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.sources.fit import LOSSLESS_BITS, SMALLEST_CONTEXT, cache_bytes
from runtime.sources.forecast import INT8X_BITS, base_bytes
from runtime.sources.shapes import ModelShape

# Beside reading weights a layer takes so many microseconds: on an H200 15 to 17 for models of 1 to 14 billion
# weights (docs/benchmarks/decode-gpu.md).
GPU_LAYER_US = 16.0
# INT8-X takes more arithmetic than bits in groups: of a copy's bytes a second its products read so much.
GPU_LOSSLESS_SHARE = 0.85
# Of what products alone read in a row, what they read between a layer's other work, and that work.
CPU_SHARE, CPU_LAYER_US = 0.55, 140.0
_BASE_BITS = {"awq4": 4, "int8x3": 3}


@dataclass(frozen=True, slots=True)
class GpuRates:
    """GB/s that the GPU reads of its own memory."""

    memory: float


@dataclass(frozen=True, slots=True)
class CpuRates:
    """GB/s of packed weights that 4- and 8-bit products read."""

    int4: float
    int8: float


Rates = GpuRates | CpuRates


def tokens_per_s(shape: ModelShape, base: str, rates: Rates) -> float:
    """With the slider at 0 %, in a short conversation. `base`: "awq4" or "int8x3"."""
    if isinstance(rates, GpuRates):
        return 1e6 / _gpu_us(shape, base_bytes(shape, _BASE_BITS[base]), rates)
    return 1e6 / _cpu_us(shape, shape.linear_weights / 2 / rates.int4, rates)


def lossless_tokens_per_s(shape: ModelShape, rates: Rates) -> float:
    """With the INT8 form, at the slider's right end."""
    if isinstance(rates, GpuRates):
        coded = shape.linear_weights * LOSSLESS_BITS / 8
        return 1e6 / _gpu_us(shape, coded / GPU_LOSSLESS_SHARE, rates)
    return 1e6 / _cpu_us(shape, shape.linear_weights / rates.int8, rates)


def _gpu_us(shape: ModelShape, linear_bytes: float, rates: GpuRates) -> float:
    head = shape.table_weights * INT8X_BITS[1] / 8
    read = linear_bytes + head + cache_bytes(shape, SMALLEST_CONTEXT)
    return read / rates.memory / 1e3 + GPU_LAYER_US * shape.layers


def _cpu_us(shape: ModelShape, linears: float, rates: CpuRates) -> float:
    """`linears`: nanoseconds of the products alone."""
    reading = linears + shape.table_weights / rates.int8
    return reading / CPU_SHARE / 1e3 + CPU_LAYER_US * shape.layers
