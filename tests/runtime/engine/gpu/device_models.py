"""Tiny models of every family as a GPU holds them, with any base, and float32 decoders beside them."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import torch

from kernels.dec import (
    TableCodes,
    dequantise_residual,
    pack_nibbles,
    quantise_residual,
    quantise_rtn,
)
from kernels.dec.table_steps import in_whole_steps
from kernels.gpu.dec.fetch import ResidualRows
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.embedding import HostTable
from kernels.gpu.fields import Form
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.lowbit.tables import pack_tables
from kernels.gpu.packing import pack_planes
from kernels.int8x import Quantised, Scales
from runtime.engine.gpu.model import BlockParts, DeviceModel, LinearParts
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.dense import Dense
from runtime.lowbit import scaled_base
from runtime.model import weights
from runtime.model.build import bare_block
from runtime.model.decoder import Decoder
from runtime.model.spec import ModelSpec
from tests.runtime.model.tiny import tiny_model

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# Steps of "int8x" from zero to a row's largest weight.
COARSE = 6


class Tiny(NamedTuple):
    """A device model and what it is to compute, in float32 with the same embedding and head.

    reference: base and, where the model has one, the whole residual. base: without it. source: the weights
    that were quantised.
    """

    model: DeviceModel
    reference: Decoder
    base: Decoder
    source: Decoder


class Parts(NamedTuple):
    """A linear on the device, and float32 weights as in `Tiny`."""

    device: LinearParts
    reference: torch.Tensor
    base: torch.Tensor
    source: torch.Tensor


def device_model(
    family="llama", base="awq4", context=64, residual=True, device=DEVICE, spread=0.08, **sizes
) -> Tiny:
    """A model of `tests.runtime.model.tiny` with `base` and, unless that is lossless, its residuals.

    base: "awq4", "awq3" (group codes with factors for the columns), "rtn4", "rtn3" (without),
    "squeezellm3", "squeezellm4", "int8x" (coarse planes), "int8" (planes, no residual), or "dense" (bf16).
    sizes: as in a transformers configuration, e.g. hidden_size=128, num_hidden_layers=2.
    """
    _, checkpoint = tiny_model(family, spread, **sizes)
    spec = ModelSpec.from_config(checkpoint.config)
    torch.manual_seed(7)
    blocks = [_block(checkpoint, spec, i, base, residual, device) for i in range(len(spec.layers))]
    embedding, rows = _embedding(checkpoint.load(weights.EMBEDDING).float(), device)
    head = _parts(
        checkpoint.load(weights.EMBEDDING if spec.tied else weights.HEAD).float(), None, "int8", device=device
    )
    bare = [bare_block(checkpoint, spec, i, {}) for i in range(len(spec.layers))]
    norm = weights.norm_weight(checkpoint, spec, weights.FINAL_NORM, spec.hidden)
    model = DeviceModel(
        spec=spec,
        context=context,
        embedding=embedding,
        blocks=tuple(
            BlockParts(block.layer, _moved(block.norms, device), {k: p.device for k, p in parts.items()})
            for block, parts in zip(bare, blocks, strict=True)
        ),
        norm=norm.to(device),
        head=head.device,
        ropes=tuple((c.to(device), s.to(device)) for c, s in (rope.tables(context) for rope in spec.ropes)),
    )

    def decoder(which):
        linears = [{kind: Dense(getattr(p, which)) for kind, p in parts.items()} for parts in blocks]
        mine = [bare_block(checkpoint, spec, i, block) for i, block in enumerate(linears)]
        return Decoder(spec, lambda tokens: rows[tokens], mine, norm, Dense(head.base))

    return Tiny(model, decoder("reference"), decoder("base"), decoder("source"))


def lossless_blocks(tiny) -> tuple[dict[str, LinearParts], ...]:
    """What was quantised as INT8 planes without residual, to exchange the model's linears for."""
    return tuple(
        {
            kind: _parts(linear.weight, block.biases.get(kind), "int8", device=tiny.model.device).device
            for kind, linear in block.linears.items()
        }
        for block in tiny.source.blocks
    )


def _block(checkpoint, spec, index, base, residual, device) -> dict[str, Parts]:
    return {
        kind: _parts(
            weights.fused_weight(checkpoint, spec, index, kind),
            weights.fused_bias(checkpoint, spec, index, kind),
            base,
            residual,
            device,
        )
        for kind in LINEAR_KINDS
    }


def _parts(weight, bias, base, residual=True, device=DEVICE) -> Parts:
    columns = torch.exp(0.3 * torch.randn(weight.shape[1])) if base.startswith("awq") else None
    factors = 1.0 if columns is None else columns
    made, exact = _base(weight * factors, base, device)
    lost = None
    if residual and base not in ("int8", "dense"):
        lost = quantise_residual(weight * factors - exact)
    corrected = exact if lost is None else exact + dequantise_residual(lost)
    parts = LinearParts(
        made,
        inverse_columns=None if columns is None else columns.reciprocal().to(device),
        bias=None if bias is None else bias.to(device),
        residual=None if lost is None else _residual_rows(lost, device),
    )
    return Parts(parts, corrected / factors, exact / factors, weight)


def _base(weight, base, device):
    """Weights for the device, and what they stand for in float32."""
    if base == "dense":
        return DenseWeights(weight.bfloat16().to(device)), weight.bfloat16().float()
    if base.startswith("int8"):
        coded = _int8(weight, 127 if base == "int8" else COARSE)
        # One form for all rows: interpreting a kernel for every form takes long.
        forms = (Form(8) if base == "int8" else Form(4),)
        return pack_planes(coded.q, coded.row_scale(), forms=forms).to(device), scaled_base(coded)
    if base.startswith("squeezellm"):
        table = _table(weight, int(base[-1]))
        return pack_tables(table).to(device), scaled_base(table)
    groups = quantise_rtn(weight, int(base[-1]))
    return pack_groups(groups).to(device), scaled_base(groups)


def _table(weight, bits) -> TableCodes:
    """Every row's quantiles, in whole steps."""
    places = (torch.arange(2**bits) + 0.5) / 2**bits
    table = in_whole_steps(torch.quantile(weight, places, dim=1).t().contiguous().bfloat16().float())
    codes = (weight[..., None] - table[:, None]).abs().argmin(-1).to(torch.uint8)
    return TableCodes(bits, codes, table)


def _int8(weight, levels) -> Quantised:
    scale = weight.abs().amax(1).clamp_min(1e-6) / levels
    q = (weight / scale[:, None]).round().to(torch.int8)
    return Quantised(q, Scales("row", scale))


def _residual_rows(residual, device) -> ResidualRows:
    words = pack_nibbles(residual.codes)
    return ResidualRows(words.pin_memory() if device.type == "cuda" else words, residual.scale.to(device))


def _embedding(table, device) -> tuple[HostTable, torch.Tensor]:
    """The table for the device, and its rows in float32."""
    coded = _int8(table, 127)
    codes = coded.q.contiguous()
    host = HostTable(codes.pin_memory() if device.type == "cuda" else codes, coded.row_scale().to(device))
    return host, scaled_base(coded)


def _moved(norms, device):
    values = {field.name: getattr(norms, field.name) for field in fields(norms)}
    return type(norms)(**{name: v if v is None else v.to(device) for name, v in values.items()})
