"""The Llama-family decoder: many tokens at once, in torch, over any kind of linear layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.nn import functional as F

from runtime.layers.base import Linear, LinearKind
from runtime.model.cache import KVCache, SinglePass
from runtime.model.spec import LayerSpec, ModelSpec
from runtime.model.weights import BlockNorms

Embed = Callable[[torch.Tensor], torch.Tensor]


@dataclass(slots=True)
class Block:
    """One decoder block. `linears` may be exchanged at any time between two calls."""

    layer: LayerSpec
    norms: BlockNorms
    linears: dict[LinearKind, Linear]
    biases: dict[LinearKind, torch.Tensor] = field(default_factory=dict)

    def apply(self, kind: LinearKind, x: torch.Tensor) -> torch.Tensor:
        """A fused linear with its bias: [tokens, n_in] -> [tokens, n_out]."""
        y = self.linears[kind].prefill(x)
        return y + self.biases[kind] if kind in self.biases else y


class Decoder:
    """Embedding, blocks, final norm and head. Activations are float32; layers convert as they need."""

    def __init__(
        self, spec: ModelSpec, embed: Embed, blocks: list[Block], norm: torch.Tensor, head: Linear
    ) -> None:
        self.spec, self.embed, self.blocks, self.norm, self.head = spec, embed, blocks, norm, head
        self._ropes: list[tuple[torch.Tensor, torch.Tensor]] = []

    def rope_tables(self, layer: LayerSpec, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin [>= length, rotary_dim / 2] of a layer's rope, grown on demand."""
        if not self._ropes or len(self._ropes[0][0]) < length:
            self._ropes = [rope.tables(max(length, 256)) for rope in self.spec.ropes]
        return self._ropes[layer.rope]

    def forward(self, tokens: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        """Logits of every position: tokens int64 [T] -> float32 [T, vocab]. Extends `cache` when given."""
        return self.logits(self.hidden(tokens, cache))

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Head over [T, hidden] -> float32 [T, vocab]."""
        return self.head.prefill(hidden).float()

    def hidden(self, tokens: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        """States after the final norm, float32 [T, hidden]."""
        cache = cache or KVCache(self.spec, len(tokens))
        h = self.embed(tokens) * self.spec.embedding_scale
        for index, block in enumerate(self.blocks):
            h = self.run_block(h, index, block, cache)
        cache.advance(len(tokens))
        return rms_norm(h, self.norm, self.spec.norm_eps)

    def run_block(
        self, h: torch.Tensor, index: int, block: Block, cache: KVCache | SinglePass
    ) -> torch.Tensor:
        """States [T, hidden] behind one block; `index` is its place in the cache, which is not advanced."""
        norms, eps = block.norms, self.spec.norm_eps
        attended = self._attention(rms_norm(h, norms.attention, eps), index, block, cache)
        h = h + _post(block.apply("o", attended), norms.post_attention, eps)
        gate, up = block.apply("gate_up", rms_norm(h, norms.mlp, eps)).chunk(2, dim=-1)
        return h + _post(block.apply("down", self._activate(gate) * up), norms.post_mlp, eps)

    def _activate(self, gate: torch.Tensor) -> torch.Tensor:
        return F.silu(gate) if self.spec.activation == "silu" else F.gelu(gate, approximate="tanh")

    def _attention(
        self, x: torch.Tensor, index: int, block: Block, cache: KVCache | SinglePass
    ) -> torch.Tensor:
        spec, start, count = self.spec, cache.length, len(x)
        q, k, v = block.apply("qkv", x).split([spec.q_size, spec.kv_size, spec.kv_size], dim=-1)
        q, k, v = (t.unflatten(-1, (-1, spec.head_dim)).transpose(0, 1) for t in (q, k, v))
        if block.norms.q is not None and block.norms.k is not None:
            q, k = rms_norm(q, block.norms.q, spec.norm_eps), rms_norm(k, block.norms.k, spec.norm_eps)
        cos, sin = (t[start : start + count] for t in self.rope_tables(block.layer, start + count))
        cache.write(index, rotate(k, cos, sin), v)
        keys, values = cache.visible(index, start + count)
        mask = causal_mask(start, count, block.layer.window)
        out = F.scaled_dot_product_attention(
            rotate(q, cos, sin)[None],
            keys[None],
            values[None],
            attn_mask=mask,
            scale=spec.attention_scale,
            enable_gqa=True,
        )
        return out[0].transpose(0, 1).flatten(1)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / rms(x) * weight over the last dimension, in float32; NaN where squares overflow, instead of 0."""
    mean = x.square().mean(-1, keepdim=True)
    return x * (torch.rsqrt(mean + eps) + 0.0 * mean) * weight


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate [heads, tokens, head_dim] by tables [tokens, rotary_dim / 2]; dimensions beyond pass through."""
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=-1)


def causal_mask(
    start: int, count: int, window: int | None, device: torch.device | None = None
) -> torch.Tensor:
    """Boolean [count, start + count]: query i sees keys up to its own position, at most `window` of them."""
    query = torch.arange(start, start + count, device=device)[:, None]
    key = torch.arange(start + count, device=device)[None, :]
    mask = key <= query
    return mask if window is None else mask & (key > query - window)


def _post(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    return x if weight is None else rms_norm(x, weight, eps)
