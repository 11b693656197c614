"""Models of real shapes with random weights, as the engine on a GPU holds them.

Each block has weights of its own, so that every token reads all of them from memory, but they are copies of
one block's. Residual rows are shared by all blocks: they come over the bus each time, where no cache helps,
and host memory is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import ResidualRows
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.embedding import HostTable
from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import DevicePlanes
from runtime.bench.mixture import paper_mixture
from runtime.bench.shapes import ModelShape
from runtime.engine.gpu.model import BlockParts, DeviceModel, LinearParts
from runtime.layers.base import LinearKind
from runtime.layers.device_products import Weights
from runtime.model.spec import ModelSpec
from runtime.model.weights import BlockNorms
from runtime.tuner import random_weights
from runtime.tuner.device_block import cloned, random_residual

BF16, INT8X = "bf16", "int8x"
# What a faster product may cost in size, as `choose_forms` counts it.
ESCAPE_COST = 8.0
_BF16_SIZE = 0.02
_SCALE = 2.0**-7
_LARGEST = 127

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

    head: DevicePlanes
    embedding: HostTable
    residuals: Mapping[LinearKind, ResidualRows]

    def device_bytes(self) -> int:
        """Bytes of device memory."""
        scales = sum(rows.scale.nbytes for rows in self.residuals.values())
        return self.head.nbytes + self.embedding.scale.nbytes + scales


def make_shared(shape: ModelShape, device: torch.device) -> Shared:
    """An INT8 head and embedding, and residual rows in page-locked host memory."""
    residuals = {
        kind: random_residual(n_out, n_in, device, pinned=True)
        for kind, (n_out, n_in) in shape.linears.items()
    }
    return Shared(_int8_head(shape, device), _embedding(shape, device), residuals)


def random_device_model(
    shape: ModelShape, mode: Mode, context: int, device: torch.device, shared: Shared | None = None
) -> DeviceModel:
    """A model for sequences of up to `context` tokens; `shared`: of the same shape, made anew if left out."""
    parts = shared or make_shared(shape, device)
    spec = ModelSpec.from_config(shape.config(context))
    make = mode.maker(device)
    made = {kind: make(*size) for kind, size in shape.linears.items()}
    copies = [made, *({kind: cloned(one) for kind, one in made.items()} for _ in spec.layers[1:])]
    blocks = tuple(
        BlockParts(layer, _norms(shape, device), _linears(own, mode, parts))
        for layer, own in zip(spec.layers, copies, strict=True)
    )
    head = _dense(device, shape.vocabulary, shape.hidden) if mode.name == BF16 else parts.head
    return DeviceModel(
        spec=spec,
        context=context,
        embedding=parts.embedding,
        blocks=blocks,
        norm=_near_one(shape.hidden, device),
        head=LinearParts(head),
        ropes=_ropes(spec, context, device),
    )


def _linears(made: Mapping[LinearKind, Weights], mode: Mode, shared: Shared) -> dict[LinearKind, LinearParts]:
    """A block's linears; packed ones have factors of their columns, as real models do."""
    if mode.name == BF16:
        return {kind: LinearParts(weights) for kind, weights in made.items()}
    residuals = shared.residuals if mode.corrected else {}
    return {
        kind: LinearParts(
            weights,
            inverse_columns=_near_one(weights.columns, weights.device),
            residual=_own_scale(residuals.get(kind)),
        )
        for kind, weights in made.items()
    }


def _own_scale(residual: ResidualRows | None) -> ResidualRows | None:
    return None if residual is None else replace(residual, scale=residual.scale.clone())


def _dense(device: torch.device, rows: int, columns: int) -> DenseWeights:
    return DenseWeights(
        torch.empty(rows, columns, dtype=torch.bfloat16, device=device).normal_(std=_BF16_SIZE)
    )


def _mixed_planes(device: torch.device, rows: int, columns: int) -> DevicePlanes:
    q = paper_mixture().draw(rows, columns, device=device)
    return pack_planes(q, torch.full((1,), _SCALE, device=device), escape_cost=ESCAPE_COST)


def _int8_head(shape: ModelShape, device: torch.device) -> DevicePlanes:
    """Normal rows with a scale each, as the INT8 form of a head has them."""
    weight = torch.randn(shape.vocabulary, shape.hidden, device=device)
    scale = weight.abs().amax(1) / _LARGEST
    q = weight.div_(scale[:, None]).round_().to(torch.int8)
    del weight
    return pack_planes(q, _BF16_SIZE * scale, escape_cost=ESCAPE_COST)


def _embedding(shape: ModelShape, device: torch.device) -> HostTable:
    size = (shape.vocabulary, shape.hidden)
    codes = torch.randint(-_LARGEST, _LARGEST + 1, size, dtype=torch.int8, device=device)
    if device.type == "cuda":
        codes = torch.empty(codes.shape, dtype=torch.int8, pin_memory=True).copy_(codes)
    return HostTable(codes, torch.full((shape.vocabulary,), _SCALE, device=device))


def _norms(shape: ModelShape, device: torch.device) -> BlockNorms:
    return BlockNorms(_near_one(shape.hidden, device), _near_one(shape.hidden, device))


def _near_one(size: int, device: torch.device) -> Tensor:
    return 1 + 0.1 * torch.randn(size, device=device)


def _ropes(spec: ModelSpec, context: int, device: torch.device) -> tuple[tuple[Tensor, Tensor], ...]:
    tables = (rope.tables(context) for rope in spec.ropes)
    return tuple((cos.to(device), sin.to(device)) for cos, sin in tables)
