"""Models with random weights as a GPU holds them: what a step takes depends on shapes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import WORD_OUTPUTS, ResidualRows
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.embedding import HostTable
from kernels.gpu.planes import DevicePlanes
from runtime.engine.gpu.footprint import FASTEST
from runtime.engine.gpu.head import HEAD_BITS, head_weights
from runtime.engine.gpu.model import BlockParts, DeviceModel, LinearParts
from runtime.layers.base import LinearKind
from runtime.layers.device_products import Weights
from runtime.model.spec import ModelSpec
from runtime.model.weights import BlockNorms

Residuals = Mapping[LinearKind, ResidualRows]
AnyWeights = TypeVar("AnyWeights", bound=Weights)
# What a faster product may cost in size, as `choose_forms` counts it.
ESCAPE_COST = FASTEST
# A head's price of time: where memory is short, it is what has to give.
_HEAD_PACKING = 8.0
_LARGEST = 127
_WEIGHT_SIZE, _EMBEDDING_STEP, _RESIDUAL_STEP = 0.02, 2.0**-7, 1e-4
# A few channels of a model's activations are much larger than the others: by them channels are chosen.
_OUTLIERS, _OUTLIER_SIZE = 0.002, 6.0


def random_model(
    spec: ModelSpec,
    context: int,
    blocks: Sequence[Mapping[LinearKind, Weights]],
    residuals: Residuals,
    head: Weights,
    embedding: HostTable,
) -> DeviceModel:
    """A model of `blocks` for sequences of up to `context` tokens; packed linears have factors of their
    columns, as real ones do, and are corrected by `residuals`, which all blocks share, except for the scales.
    """
    device = embedding.device
    ropes = (rope.tables(context) for rope in spec.ropes)
    return DeviceModel(
        spec=spec,
        context=context,
        embedding=embedding,
        blocks=tuple(
            BlockParts(layer, _norms(spec, device), {k: _parts(w, residuals.get(k)) for k, w in own.items()})
            for layer, own in zip(spec.layers, blocks, strict=True)
        ),
        norm=near_one(spec.hidden, device),
        head=LinearParts(head),
        ropes=tuple((cos.to(device), sin.to(device)) for cos, sin in ropes),
    )


def random_head(rows: int, columns: int, device: torch.device, bits: int = min(HEAD_BITS)) -> DevicePlanes:
    """Normal rows with a scale each, as the INT8 form of a head has them, rounded to `bits` (`HEAD_BITS`).

    The fewest make the fastest: a tuner that counts on it promises no more than it can keep.
    """
    weight = torch.randn(rows, columns, device=device)
    scale = weight.abs().amax(1) / _LARGEST
    q = weight.div_(scale[:, None]).round_().to(torch.int8)
    del weight
    return head_weights(q, _WEIGHT_SIZE * scale, bits, _HEAD_PACKING)


def random_embedding(rows: int, columns: int, device: torch.device) -> HostTable:
    """INT8 rows, page-locked for a GPU."""
    codes = torch.randint(-_LARGEST, _LARGEST + 1, (rows, columns), dtype=torch.int8, device=device)
    if device.type == "cuda":
        codes = torch.empty(codes.shape, dtype=torch.int8, pin_memory=True).copy_(codes)
    return HostTable(codes, torch.full((rows,), _EMBEDDING_STEP, device=device))


def random_residual(n_out: int, n_in: int, device: torch.device, pinned: bool) -> ResidualRows:
    """Random residual rows; `pinned`: in page-locked host memory."""
    size = (n_in, -(-n_out // WORD_OUTPUTS))
    words = torch.randint(-(2**31), 2**31 - 1, size, dtype=torch.int32, device=device)
    if pinned and device.type == "cuda":
        words = torch.empty(size, dtype=torch.int32, pin_memory=True).copy_(words)
    return ResidualRows(words, _RESIDUAL_STEP * (1 + torch.rand(n_out, device=device)))


def cloned(weights: AnyWeights) -> AnyWeights:
    """The same weights in memory of their own."""
    values = {field.name: getattr(weights, field.name) for field in fields(weights)}
    tensors: dict[str, Any] = {name: v.clone() for name, v in values.items() if isinstance(v, Tensor)}
    return replace(weights, **tensors)


def near_one(size: int, device: torch.device) -> Tensor:
    """Factors that change little."""
    return 1 + 0.1 * torch.randn(size, device=device)


def with_outliers(values: Tensor) -> Tensor:
    """The same values, a few of them much larger."""
    return values * (1 + _OUTLIER_SIZE * (torch.rand(values.shape, device=values.device) < _OUTLIERS))


def _parts(weights: Weights, residual: ResidualRows | None) -> LinearParts:
    if isinstance(weights, DenseWeights):
        return LinearParts(weights)
    own = None if residual is None else replace(residual, scale=residual.scale.clone())
    return LinearParts(weights, inverse_columns=near_one(weights.columns, weights.device), residual=own)


def _norms(spec: ModelSpec, device: torch.device) -> BlockNorms:
    """Those that a family's blocks have."""

    def norm(size: int, there: bool) -> Tensor | None:
        return near_one(size, device) if there else None

    return BlockNorms(
        attention=with_outliers(near_one(spec.hidden, device)),
        mlp=with_outliers(near_one(spec.hidden, device)),
        q=norm(spec.head_dim, spec.qk_norm),
        k=norm(spec.head_dim, spec.qk_norm),
        post_attention=norm(spec.hidden, spec.post_norms),
        post_mlp=norm(spec.hidden, spec.post_norms),
    )
