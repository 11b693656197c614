"""Models of real shapes with random weights, as the engine on a GPU holds them.

Each block has weights of its own, so that every token reads all of them from memory, but they are copies of
one block's. Residual rows are shared by all blocks: they come over the bus each time, where no cache helps,
and host memory is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.embedding import HostTable
from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import DevicePlanes
from runtime.bench.mixture import paper_mixture
from runtime.bench.shapes import ModelShape
from runtime.engine.gpu.head import HEAD_BITS, STORED_BITS
from runtime.engine.gpu.model import DeviceModel
from runtime.layers.device_products import Weights
from runtime.model.spec import ModelSpec
from runtime.tuner import random_weights
from runtime.tuner.random_model import (
    ESCAPE_COST,
    Residuals,
    cloned,
    random_embedding,
    random_head,
    random_model,
    random_residual,
)

BF16, INT8X = "bf16", "int8x"
COARSE_BITS = min(HEAD_BITS)
_BF16_SIZE = 0.02
_SCALE = 2.0**-7

MakeWeights = Callable[[int, int], Weights]


@dataclass(frozen=True, slots=True)
class Mode:
    """How the linears are kept: "bf16", "int8x" (lossless, at the INT8-X paper's level shares), or a low-bit
    base by name, which is corrected.
    """

    name: str

    @property
    def corrected(self) -> bool:
        """Whether the slider moves."""
        return self.name not in (BF16, INT8X)

    @property
    def head_bits(self) -> int | None:
        """Bits of the head's codes, None for bf16: with low-bit weights those that little memory brings."""
        if self.name == BF16:
            return None
        return COARSE_BITS if self.corrected else STORED_BITS

    def maker(self, device: torch.device) -> MakeWeights:
        """Random weights of n_out x n_in."""
        if self.name == BF16:
            return partial(_dense, device)
        if self.name == INT8X:
            return partial(_mixed_planes, device)
        (make,) = random_weights.makers(self.name, device)
        return make


@dataclass(frozen=True, slots=True)
class Shared:
    """What models of one shape have in common, whatever their mode: kept, because it is slow to make."""

    heads: Mapping[int, DevicePlanes]
    embedding: HostTable
    residuals: Residuals

    def device_bytes(self, mode: Mode) -> int:
        """Bytes of device memory that a model of this mode uses."""
        scales = sum(rows.scale.nbytes for rows in self.residuals.values())
        head = 0 if mode.head_bits is None else self.heads[mode.head_bits].nbytes
        return head + self.embedding.scale.nbytes + scales


def make_shared(shape: ModelShape, device: torch.device) -> Shared:
    """An INT8 head and embedding, and residual rows in page-locked host memory."""
    residuals = {
        kind: random_residual(n_out, n_in, device, pinned=True)
        for kind, (n_out, n_in) in shape.linears.items()
    }
    size = (shape.vocabulary, shape.hidden)
    heads = {bits: random_head(*size, device, bits) for bits in (STORED_BITS, COARSE_BITS)}
    return Shared(heads, random_embedding(*size, device), residuals)


def random_device_model(
    shape: ModelShape, mode: Mode, context: int, device: torch.device, shared: Shared | None = None
) -> DeviceModel:
    """A model for sequences of up to `context` tokens; `shared`: of the same shape, made anew if left out."""
    parts = shared or make_shared(shape, device)
    spec = ModelSpec.from_config(shape.config(context))
    make = mode.maker(device)
    made = {kind: make(*size) for kind, size in shape.linears.items()}
    copies = [made, *({kind: cloned(one) for kind, one in made.items()} for _ in spec.layers[1:])]
    bits = mode.head_bits
    head = _dense(device, shape.vocabulary, shape.hidden) if bits is None else parts.heads[bits]
    residuals = parts.residuals if mode.corrected else {}
    return random_model(spec, context, copies, residuals, head, parts.embedding)


def _dense(device: torch.device, rows: int, columns: int) -> DenseWeights:
    return DenseWeights(
        torch.empty(rows, columns, dtype=torch.bfloat16, device=device).normal_(std=_BF16_SIZE)
    )


def _mixed_planes(device: torch.device, rows: int, columns: int) -> DevicePlanes:
    q = paper_mixture().draw(rows, columns, device=device)
    return pack_planes(q, torch.full((1,), _SCALE, device=device), escape_cost=ESCAPE_COST)
