"""Decoder blocks of random weights on a GPU, in copies that no cache holds, as lists of calls to capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from kernels.gpu.attention.cache import new_device_cache
from runtime.engine.gpu.linears import BoundBlock, Fetching
from runtime.engine.gpu.step import DecodeStep, new_step_buffers
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_products import PackedWeights, product_warps
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.tuner.fetching import FetchShape
from runtime.tuner.linear_inputs import LinearInputs
from runtime.tuner.random_model import cloned, random_embedding, random_head, random_model, random_residual
from runtime.tuner.random_weights import MakeWeights

Call = Callable[[], object]
# Tokens in the KV cache.
CONTEXT = 512
# More than any cache holds, and enough copies to keep a graph's start out of the result.
COLD_BYTES = 300_000_000
FEWEST_COPIES, MOST_COPIES = 4, 48
# Embedding and head are not run here.
_VOCABULARY = 128
# The row of `Arrivals` after those of all kinds and of the head.


def copies_needed(nbytes: int, fewest: int = FEWEST_COPIES) -> int:
    """Copies of something so large that no cache holds all of them."""
    return min(max(fewest, -(-COLD_BYTES // nbytes)), MOST_COPIES)


class DeviceBlock:
    """Blocks of a model's shapes, run as the engine runs them, at one place in the context."""

    def __init__(
        self,
        spec: ModelSpec,
        makers: Sequence[MakeWeights],
        device: torch.device,
        copies: int | None = None,
        pinned: bool = True,
    ) -> None:
        """`makers` take turns at the copies, for bases whose blocks differ; `pinned` False keeps residuals on
        the device, where their kernels compile alike.
        """
        shapes = {kind: linear_shape(spec, kind) for kind in LINEAR_KINDS}
        made = [{kind: make(*shapes[kind]) for kind in LINEAR_KINDS} for make in makers]
        self.copies = copies or copies_needed(sum(weights.nbytes for weights in made[0].values()))
        self.shapes = {kind: FetchShape(*shapes[kind], product_warps(w)) for kind, w in made[0].items()}
        residuals = {kind: random_residual(*shapes[kind], device, pinned) for kind in LINEAR_KINDS}
        weights = [in_turn(made, i) for i in range(self.copies)]
        position = min(CONTEXT, spec.context - 1)
        mine = _cut(spec, self.copies)
        head = random_head(_VOCABULARY, spec.hidden, device)
        embedding = random_embedding(_VOCABULARY, spec.hidden, device)
        self.model = random_model(mine, position + 1, weights, residuals, head, embedding)
        self._cache = new_device_cache(self.copies, spec.n_kv_heads, position + 1, spec.head_dim, device)
        self._cache.keys.normal_()
        self._cache.values.normal_()
        self._buffers = new_step_buffers(self.model)
        self._buffers.state.place(position, 0)
        self._start = torch.randn_like(self._buffers.stream)
        self._inputs = LinearInputs(shapes, device)

    def start(self, table: Mapping[LinearKind, int]) -> None:
        """k_chunk by kind for every graph, and the residual stream as at the first block."""
        for kind in LINEAR_KINDS:
            self._buffers.kinds[kind].step.set_k_chunk(table.get(kind, 0))
        self._buffers.stream.copy_(self._start)

    def step(self, fetching: Fetching) -> DecodeStep:
        """The engine's step of these blocks, with rows fetched so."""
        return DecodeStep(self.model, self._cache, self._buffers, fetching)

    def calls(self, fetching: Fetching, again: LinearKind | None = None) -> list[Call]:
        """Every block once; the kinds that `fetching` names are corrected, and no others are ready to be.

        again: each block is followed by this kind's linear once more, of a block that no cache holds.
        """
        step, corrected = self.step(fetching), frozenset(fetching)
        found: list[Call] = []
        for index, block in enumerate(self.model.blocks):
            found.append(partial(step.run_block, index, block, corrected))
            if again is not None:
                other = step.blocks[(index + self.copies // 2) % self.copies]
                found.append(partial(self._inputs.run, again, other[again], corrected=False))
        return found

    def linears(self, fetching: Fetching) -> list[BoundBlock]:
        """The linears of every copy."""
        return self.step(fetching).blocks

    @property
    def results(self) -> tuple[torch.Tensor, ...]:
        """What all of a token's numbers go into."""
        return (self._buffers.stream,)


def _cut(spec: ModelSpec, copies: int) -> ModelSpec:
    """The model with so many blocks, and without most of its vocabulary."""
    layers = tuple(spec.layers[index % len(spec.layers)] for index in range(copies))
    return replace(spec, vocab_size=_VOCABULARY, layers=layers)


def in_turn(made: Sequence[dict[LinearKind, PackedWeights]], copy: int) -> dict[LinearKind, PackedWeights]:
    """Of the blocks made the one whose turn it is, with memory of its own."""
    block = made[copy % len(made)]
    return block if copy < len(made) else {kind: cloned(weights) for kind, weights in block.items()}
