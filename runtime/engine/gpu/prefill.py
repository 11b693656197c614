"""Prompts on a GPU: many tokens at once through panels of decoded weights, corrected in every channel."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import sdpa_kernel

from kernels.gpu.attention.cache import DeviceCache
from runtime.engine.gpu.model import BlockParts, DeviceModel, LinearParts
from runtime.engine.gpu.panels import PANEL_BYTES, Panels
from runtime.engine.gpu.prefill_attention import BACKENDS, attend
from runtime.engine.gpu.prefill_memory import PrefillMemory, prefill_memory
from runtime.engine.gpu.residual_stream import SLICE_BYTES, ResidualStream, Slice, channel_slices
from runtime.layers.base import LINEAR_KINDS
from runtime.model.decoder import rms_norm, rotate

# A corrected chunk takes as long as its residuals need on the link: large chunks cost less a token.
CHUNK = 512


@dataclass(frozen=True, slots=True)
class _Pass:
    """A chunk on its way through the blocks: its first position, and residual words in the blocks' order."""

    start: int
    words: Iterator[Tensor]


class Prefill:
    """Appends tokens to a cache. Buffers are made once (`memory`) and serve every prompt.

    done: how many tokens of the latest `run` are in the cache.
    """

    def __init__(
        self,
        model: DeviceModel,
        cache: DeviceCache,
        *,
        corrected: bool,
        chunk: int = CHUNK,
        panel_bytes: int = PANEL_BYTES,
        slice_bytes: int = SLICE_BYTES,
    ) -> None:
        """`corrected`: every token gets the whole residual of the linears that have one; otherwise the base
        alone computes, as in the paper. `chunk`: tokens at once. ValueError for a chunk of none.
        """
        if chunk < 1:
            raise ValueError(f"a chunk of {chunk} tokens does not fill a cache")
        self.done = 0
        self._model, self._cache, self._chunk, self._slice_bytes = model, cache, chunk, slice_bytes
        residuals = any(linear.residual is not None for b in model.blocks for linear in b.linears.values())
        self.memory: PrefillMemory = prefill_memory(
            model.spec,
            chunk,
            context=cache.context,
            corrected=corrected and residuals,
            cache_bits=cache.bits,
            panel_bytes=panel_bytes,
            slice_bytes=slice_bytes,
        )
        rows = self.memory.sums // (4 * chunk)
        self._sums = torch.empty(chunk * rows, dtype=torch.float32, device=model.device)
        self._panels = Panels(model.device, rows, panel_bytes)
        self._stream = ResidualStream(model.device, self.memory.residuals // 2) if corrected else None

    @torch.inference_mode()
    def run(
        self,
        tokens: Sequence[int],
        start: int,
        check: Callable[[], None],
        blocks: Sequence[BlockParts] | None = None,
    ) -> Tensor:
        """Append `tokens` from position `start` on; the last one's residual stream, float32 [1, hidden],
        before the final norm.

        check: called before each chunk, when the chunks before are computed; may raise, and what is `done`
        stays valid. blocks: the model's with other linears, to compute with instead. Raises ValueError when
        there is no token or no room for them.
        """
        self.done = 0
        if not 0 <= start < start + len(tokens) <= self._cache.context:
            raise ValueError(
                f"{len(tokens)} tokens from position {start} on do not fit {self._cache.context}"
            )
        blocks = self._model.blocks if blocks is None else blocks
        for first in range(0, len(tokens), self._chunk):
            check()
            part = torch.tensor(tokens[first : first + self._chunk])
            last = self._run_chunk(part, start + first, blocks)
            self.done += len(part)
        return last

    def _run_chunk(self, tokens: Tensor, start: int, blocks: Sequence[BlockParts]) -> Tensor:
        """The stream of the chunk's last token, computed when this returns."""
        spec, device = self._model.spec, self._model.device
        stream = self._model.embedding.rows(tokens) * spec.embedding_scale
        with closing(self._words(blocks)) as words, sdpa_kernel(BACKENDS):
            for index, block in enumerate(blocks):
                self._block(stream, index, block, _Pass(start, words))
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
        return stream[-1:].clone()

    def _words(self, blocks: Sequence[BlockParts]) -> Generator[Tensor, None, None]:
        """All residual slices of a chunk, in the order in which its blocks take them."""
        linears = (block.linears[kind] for block in blocks for kind in LINEAR_KINDS)
        if self._stream is not None:
            yield from self._stream.through(piece for linear in linears for piece in self._slices(linear))

    def _slices(self, linear: LinearParts) -> list[Slice]:
        """How the linear's residual arrives; empty where it stays uncorrected."""
        if self._stream is None or linear.residual is None:
            return []
        return channel_slices(linear.residual, self._slice_bytes)

    def _block(self, stream: Tensor, index: int, block: BlockParts, now: _Pass) -> None:
        """Add what a block makes of `stream` [tokens, hidden] to it."""
        linears, norms, eps = block.linears, block.norms, self._model.spec.norm_eps
        qkv = self._linear(rms_norm(stream, norms.attention, eps), linears["qkv"], now)
        attended = self._attention(qkv, index, block, now.start)
        stream += _normed(self._linear(attended.float(), linears["o"], now), norms.post_attention, eps)
        gate_up = self._linear(rms_norm(stream, norms.mlp, eps), linears["gate_up"], now)
        down = self._linear(self._gated(gate_up), linears["down"], now)
        stream += _normed(down, norms.post_mlp, eps)

    def _linear(self, x: Tensor, linear: LinearParts, now: _Pass) -> Tensor:
        """float32 [tokens, n_in], which is overwritten, -> [tokens, n_out] in the buffer of all sums."""
        if linear.inverse_columns is not None:
            x.mul_(linear.inverse_columns)
        narrow = x.bfloat16()
        out = self._sums[: len(x) * linear.weights.rows].view(len(x), linear.weights.rows)
        slices = self._slices(linear)
        if slices:
            self._panels.multiply_corrected(narrow, linear, slices, now.words, out)
        else:
            self._panels.multiply(narrow, linear, out)
        return out if linear.bias is None else out.add_(linear.bias)

    def _attention(self, qkv: Tensor, index: int, block: BlockParts, start: int) -> Tensor:
        """Attention of [tokens, q, k and v], which go into the cache: bf16 [tokens, q]."""
        spec, layer = self._model.spec, self._cache.layer(index)
        parts = qkv.split([spec.q_size, spec.kv_size, spec.kv_size], dim=-1)
        q, k, v = (part.unflatten(-1, (-1, spec.head_dim)).transpose(0, 1) for part in parts)
        cos, sin = (table[start : start + len(qkv)] for table in self._model.ropes[block.layer.rope])
        k = rotate(_normed(k, block.norms.k, spec.norm_eps), cos, sin)
        layer.write(start, k, v)
        q = rotate(_normed(q, block.norms.q, spec.norm_eps), cos, sin).bfloat16()
        return attend(q, layer, start, block.layer.window, spec.attention_scale)

    def _gated(self, gate_up: Tensor) -> Tensor:
        """activation(first half) * second half, in the place of the first."""
        gate, up = gate_up.chunk(2, dim=-1)
        if self._model.spec.activation == "silu":
            F.silu(gate, inplace=True)
        else:
            torch.ops.aten.gelu_(gate, approximate="tanh")
        return gate.mul_(up)


def _normed(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return x if weight is None else rms_norm(x, weight, eps)
