"""Static KV cache of all layers in device memory, bf16 or int8, filled from the left."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BF16_BITS, INT8_BITS = 16, 8
# Magnitudes of codes end here; -128 is not used.
MOST_CODE = 127
# The least that a row's largest magnitude counts as, so that a row of zeros has a scale.
LEAST_MAGNITUDE = 1e-30
_SCALE_BYTES = 4


def cache_bytes_per_token(layers: int, kv_heads: int, head_dim: int, bits: int = BF16_BITS) -> int:
    """Bytes of device memory that one position takes in all layers."""
    _check_bits(bits)
    row = head_dim * bits // 8 + (_SCALE_BYTES if bits == INT8_BITS else 0)
    return 2 * layers * kv_heads * row


def quantise_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """int8 codes [..., head_dim] and float32 scales [...] of rows: row = scale * codes, ties to even."""
    rows = rows.float()
    scales = rows.abs().amax(-1).clamp_min(LEAST_MAGNITUDE) * (1 / MOST_CODE)
    return (rows / scales[..., None]).round().to(torch.int8), scales


@dataclass(frozen=True, slots=True)
class LayerCache:
    """One layer: keys and values [kv_heads, context, head_dim], after RoPE; bf16, or int8 with scales.

    key_scales, value_scales: float32 [kv_heads, context] of an int8 cache, else None. All are views of
    `DeviceCache`; what was not yet written is undefined.
    """

    keys: Tensor
    values: Tensor
    key_scales: Tensor | None = None
    value_scales: Tensor | None = None

    def __post_init__(self) -> None:
        _check_parts(self.keys, self.values, self.key_scales, self.value_scales)

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.keys.shape[0]

    @property
    def context(self) -> int:
        """Positions there is room for."""
        return self.keys.shape[1]

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.keys.shape[2]

    @property
    def bits(self) -> int:
        """Bits of a stored number, 16 or 8."""
        return 8 * self.keys.element_size()

    def write(self, start: int, keys: Tensor, values: Tensor) -> None:
        """Put keys (rotated) and values [kv_heads, tokens, head_dim] at positions from `start` on.

        Raises ValueError when they do not fit.
        """
        end = start + keys.shape[1]
        wanted = (self.kv_heads, end - start, self.head_dim)
        if keys.shape != wanted or values.shape != wanted or not 0 <= start <= end <= self.context:
            raise ValueError(
                f"keys {list(keys.shape)} and values {list(values.shape)} from position {start} on do not"
                f" fit a cache {list(self.keys.shape)}"
            )
        _put(self.keys, self.key_scales, slice(start, end), keys)
        _put(self.values, self.value_scales, slice(start, end), values)

    def visible(self, end: int) -> tuple[Tensor, Tensor]:
        """Keys and values before position `end`, bf16 [kv_heads, end, head_dim]: views, or dequantised."""
        if not 0 <= end <= self.context:
            raise ValueError(f"a cache of {self.context} positions does not end at {end}")
        return _get(self.keys, self.key_scales, end), _get(self.values, self.value_scales, end)


@dataclass(frozen=True, slots=True)
class DeviceCache:
    """All layers: as `LayerCache`, with a dimension of layers in front."""

    keys: Tensor
    values: Tensor
    key_scales: Tensor | None = None
    value_scales: Tensor | None = None

    def __post_init__(self) -> None:
        if self.keys.dim() != 4 or not (self.keys.is_contiguous() and self.values.is_contiguous()):
            raise ValueError("a cache is contiguous [layers, kv_heads, context, head_dim]")
        _check_parts(self.keys, self.values, self.key_scales, self.value_scales)

    @property
    def layers(self) -> int:
        """Layers held."""
        return self.keys.shape[0]

    @property
    def context(self) -> int:
        """Positions there is room for."""
        return self.keys.shape[2]

    @property
    def bits(self) -> int:
        """Bits of a stored number, 16 or 8."""
        return 8 * self.keys.element_size()

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        parts = (self.keys, self.values, self.key_scales, self.value_scales)
        return sum(part.nbytes for part in parts if part is not None)

    def layer(self, index: int) -> LayerCache:
        """Views of one layer."""
        if self.key_scales is None or self.value_scales is None:
            return LayerCache(self.keys[index], self.values[index])
        scales = self.key_scales[index], self.value_scales[index]
        return LayerCache(self.keys[index], self.values[index], *scales)


def new_device_cache(
    layers: int,
    kv_heads: int,
    context: int,
    head_dim: int,
    device: torch.device | str,
    bits: int = BF16_BITS,
) -> DeviceCache:
    """A cache of `bits` 16 (bf16) or 8 (int8); nothing in it is touched before it is written."""
    _check_bits(bits)
    shape = (layers, kv_heads, context, head_dim)
    if bits == BF16_BITS:
        keys, values = (torch.empty(shape, dtype=torch.bfloat16, device=device) for _ in range(2))
        return DeviceCache(keys, values)
    keys, values = (torch.empty(shape, dtype=torch.int8, device=device) for _ in range(2))
    scales = (torch.empty(shape[:3], dtype=torch.float32, device=device) for _ in range(2))
    return DeviceCache(keys, values, *scales)


def _check_bits(bits: int) -> None:
    if bits not in (BF16_BITS, INT8_BITS):
        raise ValueError(f"a cache has numbers of {BF16_BITS} or {INT8_BITS} bits, not {bits}")


def _check_parts(
    keys: Tensor, values: Tensor, key_scales: Tensor | None, value_scales: Tensor | None
) -> None:
    quantised = keys.dtype == torch.int8
    if values.shape != keys.shape or values.dtype != keys.dtype:
        raise ValueError(f"values {list(values.shape)} are not shaped as keys {list(keys.shape)}")
    if not quantised and keys.dtype != torch.bfloat16:
        raise ValueError(f"a cache is bf16 or int8, not {keys.dtype}")
    for scales in (key_scales, value_scales):
        if (scales is not None) != quantised:
            raise ValueError("an int8 cache has scales, and no other has")
        if scales is not None and (scales.shape != keys.shape[:-1] or scales.dtype != torch.float32):
            raise ValueError(f"scales {list(scales.shape)} do not fit keys {list(keys.shape)}")


def _put(stored: Tensor, scales: Tensor | None, where: slice, rows: Tensor) -> None:
    if scales is None:
        stored[:, where] = rows.to(stored.dtype)
    else:
        stored[:, where], scales[:, where] = quantise_rows(rows)


def _get(stored: Tensor, scales: Tensor | None, end: int) -> Tensor:
    if scales is None:
        return stored[:, :end]
    return (stored[:, :end].float() * scales[:, :end, None]).to(torch.bfloat16)
