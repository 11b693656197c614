"""How large a model will be in every mode, from its shapes alone.

Formulas (bytes; L: weights of the decoder linears, T: of the embedding table, N: of the norms):

- coded(w) = w · bits / 8 with bits in INT8X_BITS: INT8-X in the balanced preset, tables and all, from the
  best model measured to the worst. Norms stay bf16: 2 N.
- base(b) = sum over linears of n_out · (n_in · b / 8 + ceil(n_in / 128) · 4) + 4 n_in: b-bit codes, a bf16
  scale and a bf16 zero point for every group of 128 (the last one may be short), a factor for every input.
- residual = sum over linears of n_in · n_out / 2 + 4 n_out: 4-bit codes and one float32 scale per output
  channel.

On the device lie the linears, the lm_head (T, tied or not) and the norms; in host memory the embedding table,
of which a token reads one row, and the residual. On disk a tied table lies once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from runtime.sources.shapes import ModelShape

Mode = Literal["bf16", "int8x", "low4", "low3"]
MODES: tuple[Mode, ...] = get_args(Mode)
INT8X_BITS = (5.4, 6.4)
GROUP = 128
_GROUP_BYTES = _FACTOR_BYTES = 4
_BASE_BITS = {"low4": 4, "low3": 3}


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes from the best to the worst case; both ends are equal where the size is exact."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bytes of one mode. `disk` of a low-bit mode comes on top of the INT8-X model, which is always kept."""

    mode: Mode
    disk: ByteRange
    device: ByteRange
    host: ByteRange


def forecast(shape: ModelShape, mode: Mode) -> Forecast:
    """The sizes of a model of that shape in that mode."""
    if mode == "bf16":
        return _uniform(shape, mode, (16.0, 16.0))
    if mode == "int8x":
        return _uniform(shape, mode, INT8X_BITS)
    return _low_bit(shape, mode)


def base_bytes(shape: ModelShape, bits: int) -> int:
    """Bytes of the decoder linears in `bits` bits in groups of 128, with factors of their inputs."""
    sizes = (
        n_out * (n_in * bits // 8 + math.ceil(n_in / GROUP) * _GROUP_BYTES) + _FACTOR_BYTES * n_in
        for n_out, n_in in shape.linears.values()
    )
    return shape.layers * sum(sizes)


def residual_bytes(shape: ModelShape) -> int:
    """Bytes of the 4-bit residuals of the decoder linears."""
    return shape.layers * sum(n_out * n_in // 2 + 4 * n_out for n_out, n_in in shape.linears.values())


def _uniform(shape: ModelShape, mode: Mode, bits: tuple[float, float]) -> Forecast:
    plain = 2 * shape.norm_weights
    on_device = shape.linear_weights + shape.table_weights
    all_coded = shape.parameters - shape.norm_weights
    return Forecast(
        mode,
        disk=_range(all_coded, bits, plain),
        device=_range(on_device, bits, plain),
        host=_range(shape.table_weights, bits, 0),
    )


def _low_bit(shape: ModelShape, mode: Mode) -> Forecast:
    base, residual = base_bytes(shape, _BASE_BITS[mode]), residual_bytes(shape)
    table = shape.table_weights
    return Forecast(
        mode,
        disk=ByteRange(base + residual, base + residual),
        device=_range(table, INT8X_BITS, base + 2 * shape.norm_weights),
        host=_range(table, INT8X_BITS, residual),
    )


def _range(weights: int, bits: tuple[float, float], exact: int) -> ByteRange:
    low, high = (exact + math.ceil(weights * each / 8) for each in bits)
    return ByteRange(low, high)
