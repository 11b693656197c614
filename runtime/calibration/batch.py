"""Many equally long texts read and continued together: one product reads a weight for all of them."""

from __future__ import annotations

from typing import cast

import torch
from torch.nn import functional as F

from runtime.layers.dense import Dense
from runtime.model.cache import KVCache, SinglePass
from runtime.model.decoder import Block, Decoder, causal_mask, rms_norm, rotate
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec


class BatchCache:
    """Keys and values float32 [layers, batch, kv_heads, length, head_dim], filled from the left."""

    def __init__(self, spec: ModelSpec, batch: int, length: int) -> None:
        shape = (len(spec.layers), batch, spec.n_kv_heads, length, spec.head_dim)
        self.keys, self.values = torch.empty(shape), torch.empty(shape)
        self.length = 0

    def write(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put [batch, kv_heads, tokens, head_dim] behind what is there; gives all of both up to their end."""
        end = self.length + keys.shape[2]
        self.keys[layer, :, :, self.length : end] = keys
        self.values[layer, :, :, self.length : end] = values
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


class BatchDecoder(Decoder):
    """A source model wholly in memory, its matrices in `dtype`, over states [batch, tokens, hidden]."""

    def __init__(self, model: SourceModel, dtype: torch.dtype) -> None:
        whole = model.decoder
        head = Dense(whole.head.weight.to(dtype)) if isinstance(whole.head, Dense) else whole.head
        blocks = [_block(model, index, dtype) for index in range(len(model.spec.layers))]
        super().__init__(model.spec, whole.embed, blocks, whole.norm, head)

    def next_logits(self, tokens: torch.Tensor, cache: BatchCache) -> torch.Tensor:
        """Read int64 [batch, tokens] behind the cache's texts; float32 [batch, vocab] for what follows."""
        h = self.embed(tokens) * self.spec.embedding_scale
        for index, block in enumerate(self.blocks):
            h = self.run_block(h, index, block, cast(KVCache, cache))
        cache.length += tokens.shape[1]
        return self.logits(rms_norm(h[:, -1], self.norm, self.spec.norm_eps))

    def _attention(
        self, x: torch.Tensor, index: int, block: Block, cache: KVCache | SinglePass
    ) -> torch.Tensor:
        spec, start, count = self.spec, cache.length, x.shape[1]
        parts = block.apply("qkv", x).split([spec.q_size, spec.kv_size, spec.kv_size], dim=-1)
        q, k, v = (part.unflatten(-1, (-1, spec.head_dim)).transpose(1, 2) for part in parts)
        if block.norms.q is not None and block.norms.k is not None:
            q, k = rms_norm(q, block.norms.q, spec.norm_eps), rms_norm(k, block.norms.k, spec.norm_eps)
        cos, sin = (t[start : start + count] for t in self.rope_tables(block.layer, start + count))
        keys, values = cast(BatchCache, cache).write(index, rotate(k, cos, sin), v)
        mask = causal_mask(start, count, block.layer.window)
        out = F.scaled_dot_product_attention(
            rotate(q, cos, sin), keys, values, attn_mask=mask, scale=spec.attention_scale, enable_gqa=True
        )
        return out.transpose(1, 2).flatten(2)


def _block(model: SourceModel, index: int, dtype: torch.dtype) -> Block:
    block = model.bare_block(index)
    for kind, parts in model.parts(index).items():
        block.linears[kind] = Dense(torch.cat(parts).to(dtype))
    return block
