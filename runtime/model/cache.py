"""Static KV cache: allocated once, filled from the left, truncated by moving a number."""

from __future__ import annotations

import torch

from runtime.model.spec import ModelSpec


class KVCache:
    """Keys and values, float32 [layers, kv_heads, context, head_dim]; `length` positions are valid.

    Memory is claimed from the system only as positions are written (untouched pages cost nothing).
    """

    def __init__(self, spec: ModelSpec, context: int) -> None:
        shape = (len(spec.layers), spec.n_kv_heads, context, spec.head_dim)
        self.keys, self.values = torch.empty(shape), torch.empty(shape)
        self.context, self.length = context, 0

    def write(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Put [kv_heads, tokens, head_dim] behind the valid positions; `advance` makes them valid."""
        end = self.length + keys.shape[1]
        self.keys[layer, :, self.length : end] = keys
        self.values[layer, :, self.length : end] = values

    def advance(self, tokens: int) -> None:
        """Declare the positions just written in every layer valid."""
        self.length += tokens

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} positions to {length}")
        self.length = length

    def bytes_per_position(self) -> int:
        """Bytes that one token occupies."""
        layers, heads, _, dim = self.keys.shape
        return 2 * layers * heads * dim * self.keys.element_size()
