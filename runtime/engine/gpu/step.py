"""The kernels of one decode step, in order: what a captured graph replays for every token.

Nothing here depends on the token, its position, the slider's table or the sampling settings: kernels read
those from device memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.attention.cache import DeviceCache
from kernels.gpu.attention.decode import HeadNorms, decode_attention
from kernels.gpu.attention.scratch import AttentionScratch, new_attention_scratch
from kernels.gpu.embedding import embed_token
from kernels.gpu.post_norm import add_normed
from kernels.gpu.sampling.choose import SamplerScratch, choose_token, new_sampler_scratch
from kernels.gpu.sampling.state import SamplerState, new_sampler_state
from kernels.gpu.step_state import StepState, new_step_state
from runtime.engine.gpu.linears import BoundBlock, Fetching, KindBuffers, bind_blocks, new_kind_buffers
from runtime.engine.gpu.model import BlockParts, DeviceModel, Linears
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_linear import NOTHING, DeviceBuffers, DeviceLinear, Prologue, new_buffers

Corrected = Collection[LinearKind]
EVERY: frozenset[LinearKind] = frozenset(LINEAR_KINDS)


@dataclass(frozen=True, slots=True)
class StepBuffers:
    """Activations that pass from kernel to kernel, float32 [1, n], and what a step keeps between tokens."""

    state: StepState
    sampler: SamplerState
    scratch: SamplerScratch
    attention: AttentionScratch
    kinds: dict[LinearKind, KindBuffers]
    head: DeviceBuffers
    stream: Tensor
    attended: Tensor
    gated: Tensor


def new_step_buffers(model: DeviceModel) -> StepBuffers:
    """Buffers for a model's steps."""
    spec, device = model.spec, model.device
    group = spec.n_heads // spec.n_kv_heads
    return StepBuffers(
        state=new_step_state(model.context, device),
        sampler=new_sampler_state(spec.vocab_size, device),
        scratch=new_sampler_scratch(spec.vocab_size, device),
        attention=new_attention_scratch(spec.n_kv_heads, group, spec.head_dim, device),
        kinds=new_kind_buffers(spec, device),
        head=new_buffers(spec.hidden, spec.vocab_size, device),
        stream=torch.zeros(1, spec.hidden, device=device),
        attended=torch.zeros(1, spec.q_size, device=device),
        gated=torch.zeros(1, spec.intermediate, device=device),
    )


class DecodeStep:
    """One token of a model; `blocks` are its linears, or others in their place."""

    def __init__(
        self,
        model: DeviceModel,
        cache: DeviceCache,
        buffers: StepBuffers,
        fetching: Fetching,
        linears: Sequence[Linears] | None = None,
    ) -> None:
        self._model, self._cache, self.buffers = model, cache, buffers
        linears = [block.linears for block in model.blocks] if linears is None else linears
        self.blocks: list[BoundBlock] = bind_blocks(linears, buffers.kinds, fetching)
        head = model.head
        self._head = DeviceLinear(
            head.weights,
            buffers.head,
            inverse_columns=head.inverse_columns,
            bias=head.bias,
        )

    @property
    def logits(self) -> Tensor:
        """float32 [1, vocab], after `run` or `finish`."""
        return self.buffers.head.out

    def run(self, corrected: Corrected) -> None:
        """The token in the step's state, and the choice of the next one; `corrected` kinds fetch."""
        self._embed()
        for index, block in enumerate(self._model.blocks):
            self.run_block(index, block, corrected)
        self.finish(self.buffers.stream)
        self.choose()

    def finish(self, stream: Tensor) -> Tensor:
        """Logits of a residual stream [1, hidden]."""
        prologue = Prologue(norm=self._model.norm, eps=self._model.spec.norm_eps)
        return self._head.multiply(stream, prologue, corrected=False)

    def choose(self) -> None:
        """The next token by the logits; the state moves on to it."""
        b = self.buffers
        choose_token(self.logits, b.state, b.sampler, b.scratch)

    def run_block(self, index: int, block: BlockParts, corrected: Corrected) -> None:
        """One block on the residual stream."""
        self._attention(index, block, corrected)
        self._mlp(index, block, corrected)

    def _embed(self) -> None:
        b, model = self.buffers, self._model
        embed_token(model.embedding, b.state, b.stream, scale=model.spec.embedding_scale, sampler=b.sampler)

    def _attention(self, index: int, block: BlockParts, corrected: Corrected) -> None:
        b, spec, norms, linears = self.buffers, self._model.spec, block.norms, self.blocks[index]
        prologue = Prologue(norm=norms.attention, eps=spec.norm_eps)
        qkv = linears["qkv"].multiply(b.stream, prologue, "qkv" in corrected)
        heads = None
        if norms.q is not None and norms.k is not None:
            heads = HeadNorms(norms.q, norms.k, spec.norm_eps)
        decode_attention(
            qkv,
            self._cache.layer(index),
            b.state.position,
            self._model.ropes[block.layer.rope],
            b.attended,
            b.attention,
            scale=spec.attention_scale,
            window=block.layer.window,
            correction=linears["qkv"].fetch if "qkv" in corrected else None,
            norms=heads,
            settled=True,
        )
        self._join(linears["o"], b.attended, NOTHING, norms.post_attention, "o" in corrected)

    def _mlp(self, index: int, block: BlockParts, corrected: Corrected) -> None:
        b, spec, norms, linears = self.buffers, self._model.spec, block.norms, self.blocks[index]
        gelu = spec.activation == "gelu_tanh"
        prologue = Prologue(norm=norms.mlp, eps=spec.norm_eps, gelu=gelu)
        x, then = linears["gate_up"].gate(b.stream, b.gated, prologue, "gate_up" in corrected)
        self._join(linears["down"], x, then, norms.post_mlp, "down" in corrected)

    def _join(
        self,
        linear: DeviceLinear,
        x: Tensor,
        prologue: Prologue,
        post: Tensor | None,
        corrected: bool,
    ) -> None:
        """Add a sublayer's last product to the residual stream, through its post norm if it has one."""
        stream = self.buffers.stream
        if post is None:
            linear.add_to(stream, x, prologue, corrected)
        else:
            add_normed(stream, linear.decode(x, prologue, corrected), post, self._model.spec.norm_eps)
