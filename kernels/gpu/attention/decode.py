"""Attention of one token in one kernel: from the qkv product to the input of the o product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.attention.cache import INT8_BITS, LayerCache
from kernels.gpu.attention.decode_kernel import NO_WINDOW, decode_attention_kernel
from kernels.gpu.attention.scratch import AttentionScratch, padded, padded_width
from kernels.gpu.chaining import launch_chained
from kernels.gpu.dec.fetch import Fetch

# Elements of keys, and as many of values, that a program has under way; and positions at the most.
_BLOCK_ELEMENTS = 8192
_MOST_BLOCK = 128
_WARPS = 4


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """RMSNorm of every head of q and k: weights float32 [head_dim]."""

    q: Tensor
    k: Tensor
    eps: float


def decode_attention(
    qkv: Tensor,
    cache: LayerCache,
    position: Tensor,
    rope: tuple[Tensor, Tensor],
    out: Tensor,
    scratch: AttentionScratch,
    *,
    scale: float,
    window: int | None = None,
    bias: Tensor | None = None,
    correction: Fetch | None = None,
    norms: HeadNorms | None = None,
    settled: bool = False,
    asm: bool | None = None,
) -> Tensor:
    """Attention of the token at `position` (int32 [1]) over what is cached before it and itself, into `out`.

    qkv: float32 [1, q_size + 2 kv_size], the product's outputs; `bias` float32 of that size and what
    `correction` fetched are added, then `norms` and RoPE applied: rope = cos and sin, float32
    [context, rotary_dim / 2]. The new key and value are written to the cache. Scores are multiplied by
    `scale`; `window` positions are seen, the token's own among them. out: float32 [1, q_size].

    settled: position and the cache before it were complete when the first kernel of the chain was launched
    (as in a captured graph of one step), so that they are read without waiting for the kernel before.
    Raises ValueError when shapes do not fit.
    """
    group = _check_sizes(qkv, cache, out, bias, correction)
    half = _check_factors(cache, rope, norms)
    _check_scratch(scratch, cache, group)
    launch_chained(
        decode_attention_kernel,
        (cache.kv_heads, scratch.splits),
        qkv,
        qkv if bias is None else bias,
        *_norm_weights(norms, qkv),
        *_corrections(correction, qkv),
        *rope,
        position,
        *_stored(cache),
        out,
        scratch.partial,
        scratch.weights,
        scratch.arrived,
        1 if correction is None else correction.partial.shape[1],
        cache.context,
        NO_WINDOW if window is None else window,
        scale,
        0.0 if norms is None else norms.eps,
        **_constants(cache, scratch, group, half),
        NORM=norms is not None,
        BIAS=bias is not None,
        CORRECTIONS=0 if correction is None else correction.config.splits,
        SETTLED=settled,
        asm=asm,
        num_warps=_WARPS,
        num_stages=1,
    )
    return out


def _constants(cache: LayerCache, scratch: AttentionScratch, group: int, half: int) -> dict[str, Any]:
    rows, width = padded(group), padded_width(cache.head_dim)
    return {
        "GROUP": group,
        "ROWS": rows,
        "HEAD_DIM": cache.head_dim,
        "WIDTH": width,
        "HALF": half,
        "BLOCK": min(_MOST_BLOCK, _BLOCK_ELEMENTS // width),
        "SPLITS": scratch.splits,
        "SHARE": scratch.share,
        "QUANTISED": cache.bits == INT8_BITS,
    }


def _norm_weights(norms: HeadNorms | None, unused: Tensor) -> tuple[Tensor, Tensor]:
    return (unused, unused) if norms is None else (norms.q, norms.k)


def _corrections(fetch: Fetch | None, unused: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if fetch is None:
        return unused, unused, unused, unused
    return fetch.partial, fetch.residual.scale, fetch.selection.common, fetch.selection.control


def _stored(cache: LayerCache) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if cache.key_scales is None or cache.value_scales is None:
        return cache.keys, cache.values, cache.keys, cache.values
    return cache.keys, cache.values, cache.key_scales, cache.value_scales


def _check_sizes(
    qkv: Tensor, cache: LayerCache, out: Tensor, bias: Tensor | None, correction: Fetch | None
) -> int:
    """Query heads that share a key and value head."""
    group, rest = divmod(out.numel(), cache.kv_heads * cache.head_dim)
    if rest or not group:
        raise ValueError(f"{out.numel()} outputs do not fit a cache {list(cache.keys.shape)}")
    outputs = (group + 2) * cache.kv_heads * cache.head_dim
    _check_vector("outputs", out, out.numel())
    _check_vector("a product", qkv, outputs)
    if bias is not None:
        _check_vector("a bias", bias, outputs)
    if correction is not None and correction.residual.rows != outputs:
        raise ValueError(f"a correction of {correction.residual.rows} outputs does not fit {outputs}")
    return group


def _check_vector(name: str, values: Tensor, count: int) -> None:
    if values.numel() != count or values.dtype != torch.float32 or not values.is_contiguous():
        raise ValueError(
            f"{name} of {values.numel()} values {values.dtype} should be {count}, float32, contiguous"
        )


def _check_factors(cache: LayerCache, rope: tuple[Tensor, Tensor], norms: HeadNorms | None) -> int:
    """Half of the rotated dimensions."""
    cos, sin = rope
    half = cos.shape[-1]
    if cos.shape != sin.shape or cos.shape[0] < cache.context or 2 * half > cache.head_dim:
        raise ValueError(f"rope tables {list(cos.shape)} do not fit a cache {list(cache.keys.shape)}")
    if norms is not None:
        _check_vector("a norm of queries", norms.q, cache.head_dim)
        _check_vector("a norm of keys", norms.k, cache.head_dim)
    return half


def _check_scratch(scratch: AttentionScratch, cache: LayerCache, group: int) -> None:
    wanted = (cache.kv_heads, scratch.splits, padded(group), padded_width(cache.head_dim))
    if scratch.partial.shape != wanted:
        raise ValueError(f"scratch {list(scratch.partial.shape)} is not {list(wanted)}")
