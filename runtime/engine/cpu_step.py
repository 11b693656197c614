"""One decode step on the CPU: torch's low-bit products with compiled small operations between them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from kernels import cpu
from runtime.engine.cpu_linear import CpuLinear, LinearInput, ProductLayer
from runtime.engine.step_timer import StepTimer
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.correction import NOTHING
from runtime.layers.int8 import Int8
from runtime.model.cache import KVCache
from runtime.model.decoder import Block, Decoder
from runtime.model.weights import linear_shape


@dataclass(slots=True)
class _Norms:
    attention: np.ndarray
    mlp: np.ndarray
    q: np.ndarray
    k: np.ndarray
    post_attention: np.ndarray
    post_mlp: np.ndarray


@dataclass(slots=True)
class _StepBlock:
    index: int
    norms: _Norms
    linears: dict[LinearKind, CpuLinear]
    cos: np.ndarray
    sin: np.ndarray
    window: int | None


class CpuStep:
    """Runs single tokens over a decoder's blocks and a KV cache; buffers are allocated once.

    While `timer` is set, it collects what products and corrections take.
    """

    def __init__(self, decoder: Decoder, embedding: Int8, head: Int8, cache: KVCache) -> None:
        spec = decoder.spec
        self._spec, self._cache, self._embedding, self._head = spec, cache, embedding, head
        self._inputs = {kind: LinearInput(linear_shape(spec, kind)[1]) for kind in LINEAR_KINDS}
        self._final = LinearInput(spec.hidden)
        self._head_columns = CpuLinear(head, self._final, None).inverse_columns
        self._eps = np.float32(spec.norm_eps)
        self._h = np.zeros(spec.hidden, np.float32)
        self._scratch = np.empty(max(linear_shape(spec, kind)[0] for kind in LINEAR_KINDS), np.float32)
        self._scores = np.empty(cache.context, np.float32)
        self._norm = decoder.norm.numpy()
        self._gelu = spec.activation == "gelu_tanh"
        self._keys, self._values = cache.keys.numpy(), cache.values.numpy()
        self._blocks = [self._bind(decoder, i, block) for i, block in enumerate(decoder.blocks)]
        self.timer: StepTimer | None = None

    def bind_linears(
        self, index: int, layers: Mapping[LinearKind, ProductLayer]
    ) -> dict[LinearKind, CpuLinear]:
        """Layers of a block bound to the step's buffers, in the block's biases."""
        biases = {kind: old.bias for kind, old in self._blocks[index].linears.items()}
        bound = {kind: CpuLinear(layer, self._inputs[kind], None) for kind, layer in layers.items()}
        for kind, linear in bound.items():
            linear.bias = biases[kind]
        return bound

    def use_linears(self, index: int, linears: dict[LinearKind, CpuLinear]) -> None:
        """Exchange a block's linears between two tokens."""
        self._blocks[index].linears = linears

    def linears(self, index: int) -> dict[LinearKind, CpuLinear]:
        """The linears of a block now in use."""
        return self._blocks[index].linears

    def decode(self, token: int) -> torch.Tensor:
        """Append one token to the cache; logits of its successor, float32 [vocab]."""
        position, h = self._cache.length, self._h
        np.multiply(self._embedding_row(token), np.float32(self._spec.embedding_scale), out=h)
        for block in self._blocks:
            self._attention(block, position)
            self._mlp(block)
        self._cache.advance(1)
        cpu.start_linear(h, self._norm, self._eps, self._head_columns, self._final.x, self._final.bits)
        started = time.perf_counter()
        logits = self._logits()
        if self.timer is not None:
            self.timer.head_s = time.perf_counter() - started
        return logits

    def _attention(self, block: _StepBlock, position: int) -> None:
        norms, target = block.norms, self._inputs["o"]
        y, lost, bias = self._linear(block, "qkv", norms.attention)
        first = 0 if block.window is None else max(0, position - block.window + 1)
        cpu.attend(
            y,
            lost,
            bias,
            norms.q,
            norms.k,
            self._eps,
            block.cos,
            block.sin,
            self._keys[block.index],
            self._values[block.index],
            position,
            first,
            np.float32(self._spec.attention_scale),
            self._scratch,
            self._scores,
            block.linears["o"].inverse_columns,
            target.x,
            target.bits,
        )
        self._finish(self._linear(block, "o"), norms.post_attention)

    def _mlp(self, block: _StepBlock) -> None:
        target = self._inputs["down"]
        y, lost, bias = self._linear(block, "gate_up", block.norms.mlp)
        inverse = block.linears["down"].inverse_columns
        cpu.gate(y, lost, bias, self._gelu, self._scratch, inverse, target.x, target.bits)
        self._finish(self._linear(block, "down"), block.norms.post_mlp)

    def _linear(
        self, block: _StepBlock, kind: LinearKind, norm: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Product bits, correction and bias of a linear; `norm` prepares its input from h first."""
        linear = block.linears[kind]
        if norm is not None:
            source = self._inputs[kind]
            cpu.start_linear(self._h, norm, self._eps, linear.inverse_columns, source.x, source.bits)
        if self.timer is not None:
            return *self.timer.run(kind, linear), linear.bias
        lost = linear.correct()
        return linear.product(), lost, linear.bias

    def _finish(self, parts: tuple[np.ndarray, np.ndarray, np.ndarray], post: np.ndarray) -> None:
        cpu.finish_block(self._h, *parts, post, self._eps, self._scratch)

    def _embedding_row(self, token: int) -> np.ndarray:
        return self._embedding.rows(torch.tensor([token]))[0].numpy()

    def _logits(self) -> torch.Tensor:
        logits = self._head.product(self._final.tensor)[0].float()
        cpu.sharpen(self._final.x, self._head.q.numpy(), self._head.scale.numpy(), logits.numpy())
        return logits

    def _bind(self, decoder: Decoder, index: int, block: Block) -> _StepBlock:
        cos, sin = decoder.rope_tables(block.layer, self._cache.context)
        linears = {
            kind: CpuLinear(_product_layer(block, kind), self._inputs[kind], block.biases.get(kind))
            for kind in LINEAR_KINDS
        }
        norms = block.norms
        arrays = (norms.attention, norms.mlp, norms.q, norms.k, norms.post_attention, norms.post_mlp)
        return _StepBlock(
            index,
            _Norms(*(NOTHING if a is None else a.contiguous().numpy() for a in arrays)),
            linears,
            cos.numpy(),
            sin.numpy(),
            block.layer.window,
        )


def _product_layer(block: Block, kind: LinearKind) -> ProductLayer:
    layer = block.linears[kind]
    if not hasattr(layer, "product"):
        raise TypeError(f"{type(layer).__name__} has no single-token product")
    return layer  # type: ignore[return-value]
