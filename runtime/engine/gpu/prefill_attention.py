"""Attention of many tokens on the KV cache, by torch's fused kernels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend
from torch.nn.attention.bias import causal_lower_right

from kernels.gpu.attention.cache import LayerCache
from runtime.model.decoder import causal_mask

# cuDNN's kernels are left out: keys that several query heads share are views with a stride of 0.
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def attend(q: Tensor, cache: LayerCache, start: int, window: int | None, scale: float) -> Tensor:
    """Attention of queries bf16 [heads, tokens, head_dim] from position `start` on: bf16 [tokens, n].

    Their keys and values are in the cache already; with `window` a query sees so many, its own included.
    Nothing of heads x tokens x keys is held where a fused kernel serves.
    """
    tokens, end = q.shape[1], start + q.shape[1]
    first = 0 if window is None else max(0, start + 1 - window)
    keys, values = (_shared(part[:, first:], len(q)) for part in cache.visible(end))
    grouped = q.unflatten(0, (cache.kv_heads, -1))
    mask, causal = _mask(start - first, tokens, window, q.device)
    out = F.scaled_dot_product_attention(grouped, keys, values, mask, is_causal=causal, scale=scale)
    return out.flatten(0, 1).transpose(0, 1).flatten(1)


def _mask(before: int, tokens: int, window: int | None, device: torch.device) -> tuple[Tensor | None, bool]:
    """What hides later keys, and whether plain causality does; `before` keys lie before the first query."""
    if window is not None and before + tokens > window:
        return causal_mask(before, tokens, window, device), False
    if before == 0 and tokens > 1:
        return None, True
    return (None if tokens == 1 else causal_lower_right(tokens, before + tokens)), False


def _shared(part: Tensor, heads: int) -> Tensor:
    """[kv_heads, keys, head_dim] for the query heads of each: a view, batch by key/value head."""
    return part[:, None].expand(-1, heads // len(part), -1, -1)
