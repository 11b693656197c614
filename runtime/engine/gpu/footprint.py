"""Bytes that parts of a model take in a GPU's memory: arithmetic on shapes, as torch's allocator counts."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from kernels.gpu.attention.cache import INT8_BITS, cache_bytes_per_token
from kernels.gpu.fields import GROUP_ROWS, LANES, STEP_COLUMNS
from kernels.gpu.lowbit.groups import UNROLL
from kernels.gpu.planes import MANY_GROUPS
from runtime.model.spec import ModelSpec

# torch's allocator gives whole blocks of so many bytes.
ALLOCATION = 512
FLOAT_BYTES = WORD_BYTES = 4
# Prices of time in bits (`kernels.gpu.choosing.choose_forms`) with which INT8-X is packed, from the smallest
# planes to the fastest.
PACKINGS = (0.0, 8.0, 24.0)
SMALLEST, FASTEST = PACKINGS[0], PACKINGS[-1]
Layout = Literal["groups", "table", "planes"]

# What planes take beyond the bits that the INT8-X container takes, by these, in bits a weight: measured on
# Gaussian weights whose rows and columns differ by factors of e^0.3. Large matrices have longer supersteps.
_STORED = (2.0, 5.7, 6.3, 6.9, 7.4, 8.0)
_ADDED = {0.0: (0.12, 0.14, 0.29, 0.44, 0.38, 0.1), 8.0: (0.6, 0.64, 0.65, 0.58, 0.43, 0.1)}
_ADDED |= {24.0: (0.85, 0.79, 0.75, 0.68, 0.49, 0.1)}
_ADDED_TO_LARGE = {**_ADDED, 8.0: (0.42, 0.42, 0.49, 0.54, 0.42, 0.1)}


@dataclass(frozen=True, slots=True)
class LinearForm:
    """How a linear is stored: codes of 3 or 4 bits in groups of 128 or with a table for each row, or INT8-X
    planes, which take `bits` a weight in their container. `columns`: its inputs have factors.
    """

    layout: Layout
    bits: float
    columns: bool = False

    def __post_init__(self) -> None:
        if self.layout != "planes" and self.bits not in (3, 4):
            raise ValueError(f"{self.layout} have 3 or 4 bits, not {self.bits:g}")


def allocated(*sizes: int) -> int:
    """Bytes of device memory that tensors of these sizes take."""
    return sum(-(-size // ALLOCATION) * ALLOCATION for size in sizes)


def weight_bytes(n_out: int, n_in: int, form: LinearForm, packing: float = SMALLEST) -> int:
    """A linear's weights and the factors of its inputs; `packing` is a price of time, for planes only."""
    factors = allocated(FLOAT_BYTES * n_in) if form.columns else 0
    if form.layout == "groups":
        return factors + _groups_bytes(n_out, n_in, int(form.bits))
    if form.layout == "table":
        return factors + _table_bytes(n_out, n_in, int(form.bits))
    return factors + _planes_bytes(n_out, n_in, form.bits, packing)


def correction_bytes(n_out: int) -> int:
    """The residual's scales; its rows lie in host memory."""
    return allocated(FLOAT_BYTES * n_out)


def norm_bytes(spec: ModelSpec) -> int:
    """All norms, float32."""
    wide = allocated(FLOAT_BYTES * spec.hidden)
    narrow = 2 * allocated(FLOAT_BYTES * spec.head_dim) if spec.qk_norm else 0
    return len(spec.layers) * ((4 if spec.post_norms else 2) * wide + narrow) + wide


def rope_bytes(spec: ModelSpec, context: int) -> int:
    """Tables of cosines and sines, float32."""
    return sum(2 * allocated(FLOAT_BYTES * context * (rope.rotary_dim // 2)) for rope in spec.ropes)


def cache_bytes(spec: ModelSpec, context: int, bits: int) -> int:
    """The KV cache; `bits` 16 or 8."""
    each = cache_bytes_per_token(len(spec.layers), spec.n_kv_heads, spec.head_dim, bits)
    return context * each + (4 if bits == INT8_BITS else 2) * ALLOCATION


def _groups_bytes(n_out: int, n_in: int, bits: int) -> int:
    blocks, steps = -(-n_out // GROUP_ROWS), -(-n_in // STEP_COLUMNS)
    tables = blocks * GROUP_ROWS * _whole(steps, UNROLL)
    return allocated(WORD_BYTES * blocks * steps * bits * LANES, WORD_BYTES * tables)


def _table_bytes(n_out: int, n_in: int, bits: int) -> int:
    blocks, steps = -(-n_out // GROUP_ROWS), -(-n_in // STEP_COLUMNS)
    entries = GROUP_ROWS * blocks * 2**bits // 2
    rows = FLOAT_BYTES * n_out
    return allocated(WORD_BYTES * blocks * steps * bits * LANES, WORD_BYTES * entries, rows, rows)


def _planes_bytes(n_out: int, n_in: int, stored: float, packing: float) -> int:
    """Planes, streams and patches by the container's bits; the tables beside them exactly."""
    blocks = -(-n_out // GROUP_ROWS)
    weights = blocks * GROUP_ROWS * _whole(n_in, STEP_COLUMNS)
    coded = int(weights * planes_bits(stored, packing, large=blocks >= MANY_GROUPS) / 8)
    order = (2 if blocks * GROUP_ROWS <= 1 << 16 else 4) * blocks * GROUP_ROWS
    return allocated(coded, 16 * (blocks + 1), order, FLOAT_BYTES * n_out) + 2 * ALLOCATION


def planes_bits(stored: float, packing: float, large: bool = False) -> float:
    """Bits a weight on the device, padding counted as weights, of what takes `stored` bits in its container.

    Within 3 % of a model's linears together; `large` matrices have MANY_GROUPS groups of rows.
    """
    added = (_ADDED_TO_LARGE if large else _ADDED)[packing]
    at = min(max(stored, _STORED[0]), _STORED[-1])
    index = min(bisect_right(_STORED, at), len(_STORED) - 1)
    low, high = _STORED[index - 1], _STORED[index]
    share = (at - low) / (high - low)
    return stored + added[index - 1] + share * (added[index] - added[index - 1])


def _whole(count: int, multiple: int) -> int:
    """The multiple at or above `count`."""
    return -(-count // multiple) * multiple
