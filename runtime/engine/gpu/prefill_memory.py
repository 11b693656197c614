"""Device memory that a prompt takes beside weights and KV cache, for the plan of what fits."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.gpu.attention.cache import BF16_BITS
from runtime.engine.gpu.panels import PANEL_BYTES, panel_buffer_bytes
from runtime.engine.gpu.residual_stream import SLICE_BYTES, largest_slice
from runtime.layers.base import LINEAR_KINDS
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape

_FLOAT, _BF16 = 4, 2
# Bytes for each query and key of a mask: comparisons, the mask, and the bias that a kernel makes of it.
_MASK = 5
# A dequantised cache: two halves in bf16, and codes and products of one of them in float32.
_DEQUANTISED = 2 * _BF16 + 2 * _FLOAT


@dataclass(frozen=True, slots=True)
class PrefillMemory:
    """Bytes. panels, residuals (both buffers) and sums are held; working comes and goes in every chunk."""

    panels: int
    residuals: int
    sums: int
    working: int

    @property
    def total(self) -> int:
        """All of it at once."""
        return self.panels + self.residuals + self.sums + self.working


def prefill_memory(
    spec: ModelSpec,
    chunk: int,
    *,
    context: int | None = None,
    corrected: bool = True,
    cache_bits: int = BF16_BITS,
    panel_bytes: int = PANEL_BYTES,
    slice_bytes: int = SLICE_BYTES,
) -> PrefillMemory:
    """What a `Prefill` of these settings takes; context: positions of the cache (None: the model's limit)."""
    shapes = [linear_shape(spec, kind) for kind in LINEAR_KINDS]
    rows = max(n_out for n_out, _ in shapes)
    slices = [largest_slice(n_in, _FLOAT * -(-n_out // 8), slice_bytes) for n_out, n_in in shapes]
    return PrefillMemory(
        panels=panel_buffer_bytes(rows, panel_bytes),
        residuals=2 * max(slices) if corrected else 0,
        sums=_FLOAT * chunk * rows,
        working=_working(spec, chunk, context or spec.context, cache_bits),
    )


def _working(spec: ModelSpec, chunk: int, context: int, cache_bits: int) -> int:
    """The residual stream and the widest of a block's steps: norm, heads, attention, gate."""
    wide = spec.q_size + 2 * spec.kv_size
    norm = (2 * _FLOAT + 2 * _BF16) * chunk * spec.hidden
    heads = (2 * _FLOAT + 2 * _BF16) * chunk * wide
    attention = 4 * _BF16 * chunk * spec.q_size + _attention(spec, chunk, context, cache_bits)
    gate = _BF16 * chunk * spec.intermediate
    return _FLOAT * chunk * spec.hidden + max(norm, heads, attention, gate)


def _attention(spec: ModelSpec, chunk: int, context: int, cache_bits: int) -> int:
    """Masks of sliding windows, and a cache dequantised."""
    windows = [layer.window for layer in spec.layers if layer.window is not None]
    mask = _MASK * chunk * min(context, chunk + max(windows)) if windows else 0
    dequantised = 0 if cache_bits == BF16_BITS else _DEQUANTISED * context * spec.kv_size
    return mask + dequantised
