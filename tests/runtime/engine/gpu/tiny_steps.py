"""Steps and engines of the smallest models, and float32 decoders over the very cache that a step reads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest
import torch

from kernels.gpu.attention.cache import BF16_BITS, DeviceCache, new_device_cache
from kernels.gpu.attention.scratch import new_attention_scratch
from kernels.gpu.dec.fetch import FetchConfig
from runtime.engine.gpu import engine
from runtime.engine.gpu.engine import GpuEngine
from runtime.engine.gpu.prefill import Prefill
from runtime.engine.gpu.step import DecodeStep, new_step_buffers
from runtime.engine.slider import TunedPath
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.dense import Dense
from runtime.model.decoder import Block, rms_norm
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.runtime.engine.gpu.device_models import DEVICE

# An interpreter takes long for every program of a kernel: few rows, one program to fetch.
SMALL = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 1,
}
FETCHING = {kind: FetchConfig(rows=4, splits=1) for kind in LINEAR_KINDS}
PATH = TunedPath(
    [
        SlowdownPoint(0.0, KChunk()),
        SlowdownPoint(2.0, KChunk(qkv=256)),
        SlowdownPoint(5.0, KChunk(512, 0, 512, 512)),
        SlowdownPoint(7.0, KChunk(768, 256, 1024, 512)),
        SlowdownPoint(9.0, KChunk(1024, 1024, 1024, 1024)),
    ]
)


def off(found, exact):
    """Error of a vector relative to its length."""
    return float((found.cpu() - exact).norm() / exact.norm())


class Places:
    """A device's cache from a position on, as the cache of a `Decoder`."""

    def __init__(self, cache: DeviceCache, length: int) -> None:
        self._cache, self.length = cache, length

    def write(self, layer, keys, values):
        device = self._cache.keys.device
        self._cache.layer(layer).write(self.length, keys.to(device), values.to(device))

    def visible(self, layer, end):
        keys, values = self._cache.layer(layer).visible(end)
        return keys.cpu().float(), values.cpu().float()

    def advance(self, tokens):
        self.length += tokens


class OneStep(NamedTuple):
    """Logits of a step and of a decoder behind the same cache; keys and values that either wrote there."""

    found: torch.Tensor
    exact: torch.Tensor
    written: torch.Tensor
    expected: torch.Tensor
    step: DecodeStep


def one_step(
    tiny, decoder, tokens, *, corrected=(), k_chunk=0, bits=BF16_BITS, linears=None, fetching=FETCHING
) -> OneStep:
    """The last of `tokens` in the step's kernels and in `decoder`, which fills the cache with all before."""
    cache, step = new_step(tiny, bits, linears, fetching)
    for kind in LINEAR_KINDS:
        step.buffers.kinds[kind].step.set_k_chunk(k_chunk)
    start = len(tokens) - 1
    with torch.inference_mode():
        decoder.hidden(torch.tensor(tokens[:-1]), Places(cache, 0))
        exact = decoder.forward(torch.tensor(tokens[-1:]), Places(cache, start))[0]
        expected = _newest(cache, start)
        step.buffers.state.place(start, tokens[-1])
        step.run(corrected)
    return OneStep(step.logits[0].cpu(), exact, _newest(cache, start), expected, step)


def new_step(tiny, bits=BF16_BITS, linears=None, fetching=FETCHING) -> tuple[DeviceCache, DecodeStep]:
    """A step with a cache of its own, whose attention is shared by two programs after 8 positions."""
    model, spec = tiny.model, tiny.model.spec
    heads, group = spec.n_kv_heads, spec.n_heads // spec.n_kv_heads
    cache = new_device_cache(len(spec.layers), heads, model.context, spec.head_dim, model.device, bits)
    attention = new_attention_scratch(heads, group, spec.head_dim, model.device, splits=2, share=4)
    buffers = replace(new_step_buffers(model), attention=attention)
    return cache, DecodeStep(model, cache, buffers, fetching, linears)


def _newest(cache, position):
    pairs = (cache.layer(index).visible(position + 1) for index in range(cache.layers))
    return torch.cat([part[:, -1].float().cpu().flatten() for pair in pairs for part in pair])


def mixed_block(tiny, index, shares) -> Block:
    """Block of the base, with this share of the residual by kind."""
    base, whole = tiny.base.blocks[index], tiny.reference.blocks[index]
    pairs = {kind: (base.linears[kind].weight, whole.linears[kind].weight) for kind in LINEAR_KINDS}
    return replace(base, linears={k: Dense(a.lerp(b, shares.get(k, 0.0))) for k, (a, b) in pairs.items()})


def small_engine(tiny, **options) -> GpuEngine:
    """An engine with its own kernels, and few programs of them in an interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernels.gpu.attention.scratch._MULTIPROCESSORS", 1)
        return GpuEngine(tiny.model, **{"path": PATH, "fetching": FETCHING, **options})


def quick_engine(tiny, **options) -> GpuEngine:
    """As `small_engine`, for tests of all around a step: without a GPU, torch computes blocks and head."""
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE.type != "cuda":
            patch.setattr(engine, "DecodeStep", partial(TorchStep, tiny))
            patch.setattr(engine, "Prefill", partial(TorchPrefill, tiny))
        return small_engine(tiny, **options)


class TorchStep(DecodeStep):
    """A step whose kinds get k_chunk / 1024 of their residual; its linears, where given, are the source's."""

    def __init__(self, tiny, model, cache, buffers, fetching, linears=None) -> None:
        super().__init__(model, cache, buffers, fetching, linears)
        self._tiny, self._exact = tiny, linears is not None

    def run_block(self, index, block, corrected):
        b, tiny = self.buffers, self._tiny
        shares = {kind: int(b.kinds[kind].step.selection.control[0]) / 1024 for kind in corrected}
        mine = tiny.source.blocks[index] if self._exact else mixed_block(tiny, index, shares)
        places = Places(self._cache, int(b.state.position))
        b.stream.copy_(tiny.base.run_block(b.stream, index, mine, places))

    def finish(self, stream):
        model, out = self._model, self.buffers.head.out
        return out.copy_(self._tiny.base.logits(rms_norm(stream, model.norm, model.spec.norm_eps)))


class TorchPrefill(Prefill):
    """A prompt with the whole residual, or without; in other blocks than the model's, by the source."""

    def __init__(self, tiny, model, cache, *, corrected, chunk) -> None:
        super().__init__(model, cache, corrected=corrected, chunk=chunk)
        self._tiny, self._whole = tiny, corrected

    def _run_chunk(self, tokens, start, blocks):
        own = self._tiny.reference if self._whole else self._tiny.base
        decoder = own if blocks is self._model.blocks else self._tiny.source
        stream = decoder.embed(tokens) * decoder.spec.embedding_scale
        for index, block in enumerate(decoder.blocks):
            stream = decoder.run_block(stream, index, block, Places(self._cache, start))
        return stream[-1:]
