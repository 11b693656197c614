"""Static KV cache: allocated once, filled from the left, truncated by moving a number."""

from __future__ import annotations

import torch

from runtime.model.spec import ModelSpec

# Key rows are padded by a cache line (16 floats): a power-of-two stride would map all rows to one cache set.
LINE = 16


class KVCache:
    """Keys float32 [layers, kv_heads, head_dim, > context], values [layers, kv_heads, context, head_dim].

    `length` positions are valid. Keys lie transposed, so that one token's scores are sums of long runs.
    Memory is claimed from the system only as positions are written (untouched pages cost nothing).
    """

    def __init__(self, spec: ModelSpec, context: int) -> None:
        stride = -(-context // LINE) * LINE + LINE
        self.keys = torch.empty(len(spec.layers), spec.n_kv_heads, spec.head_dim, stride)
        self.values = torch.empty(len(spec.layers), spec.n_kv_heads, context, spec.head_dim)
        self.context, self.length = context, 0

    def write(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Put [kv_heads, tokens, head_dim] behind the valid positions; `advance` makes them valid."""
        end = self.length + keys.shape[1]
        self.keys[layer, :, :, self.length : end] = keys.transpose(1, 2)
        self.values[layer, :, self.length : end] = values

    def visible(self, layer: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Views [kv_heads, end, head_dim] of a layer's keys and values before position `end`."""
        return self.keys[layer, :, :, :end].transpose(1, 2), self.values[layer, :, :end]

    def advance(self, tokens: int) -> None:
        """Declare the positions just written in every layer valid."""
        self.length += tokens

    def truncate(self, length: int) -> None:
        """Forget everything from position `length` on."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} positions to {length}")
        self.length = length


class SinglePass:
    """Stands in for a cache where a text is read once from its start: nothing is copied, gradients pass."""

    length = 0

    def __init__(self) -> None:
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def write(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Keep [kv_heads, tokens, head_dim] of a layer."""
        self._layers[layer] = keys, values

    def visible(self, layer: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What was written for a layer."""
        return self._layers[layer]
