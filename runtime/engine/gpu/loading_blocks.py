"""A block's linears from their files to the GPU, packed for its products, one block at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from kernels.dec import GroupCodes, TableCodes
from kernels.gpu.dec.fetch import ResidualRows
from kernels.gpu.lowbit.groups import pack_groups
from kernels.gpu.lowbit.tables import pack_tables
from runtime import lowbit
from runtime.engine.gpu.memory_plan import Setting
from runtime.engine.gpu.model import BlockParts, LinearParts, Linears
from runtime.engine.gpu.packing import planes_on, workplace
from runtime.engine.opened import OpenedModel
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_products import PackedWeights
from runtime.layers.divided import inverse
from runtime.lowbit import BaseWeights
from runtime.lowbit.blocks import linear_size, read_columns, read_residual
from runtime.lowbit.files import BlockFile
from runtime.lowbit.forms import read_base
from runtime.model.quantised import int8_block
from runtime.model.weights import BlockNorms, block_norms, fused_bias
from runtime.protocol.commands import LOSSLESS

# Residual rows of a block as they are stored, in host memory.
Rows = dict[LinearKind, Tensor]


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block on the device without its corrections, and the scales of these, where it can have them."""

    parts: BlockParts
    scales: Mapping[LinearKind, Tensor]

    def corrected(self, rows: Mapping[LinearKind, Tensor]) -> BlockParts:
        """The block with residuals whose rows lie in memory that the GPU reads."""
        linears = {
            kind: replace(linear, residual=ResidualRows(rows[kind], self.scales[kind]))
            for kind, linear in self.parts.linears.items()
        }
        return replace(self.parts, linears=linears)


class BlockReader:
    """Reads a prepared model's blocks onto a device, as a plan's setting wants them."""

    def __init__(self, opened: OpenedModel, base: str, setting: Setting, device: torch.device) -> None:
        self._opened, self._base, self._setting, self._device = opened, base, setting, device

    def block(self, index: int, residual: bool) -> tuple[ReadBlock, Rows]:
        """A block of the base, and what corrects it: nothing unless `residual`, or of a lossless model."""
        norms = moved(block_norms(self._opened.reader, self._opened.spec, index), self._device)
        layer, biases = self._opened.spec.layers[index], self._biases(index)
        if self._base == LOSSLESS:
            exact = self._exact(index, self._setting.packing, biases)
            return ReadBlock(BlockParts(layer, norms, exact), {}), {}
        linears: dict[LinearKind, LinearParts] = {}
        rows: Rows = {}
        scales: dict[LinearKind, Tensor] = {}
        with lowbit.open_block(self._opened.record.path, self._base, index) as file:
            for kind in LINEAR_KINDS:
                linears[kind] = self._linear(file, kind, biases.get(kind))
                if residual:
                    rows[kind], scale = read_residual(file, kind)
                    scales[kind] = scale.to(self._device)
        return ReadBlock(BlockParts(layer, norms, linears), scales), rows

    def lossless(self, index: int, packing: float, base: Linears) -> Linears:
        """A block's INT8-X linears to stand beside `base`, whose biases they share."""
        shared = {kind: part.bias for kind, part in base.items() if part.bias is not None}
        return self._exact(index, packing, shared)

    def _biases(self, index: int) -> dict[LinearKind, Tensor]:
        found = {
            kind: fused_bias(self._opened.reader, self._opened.spec, index, kind) for kind in LINEAR_KINDS
        }
        return {kind: bias.to(self._device) for kind, bias in found.items() if bias is not None}

    def _linear(self, file: BlockFile, kind: LinearKind, bias: Tensor | None) -> LinearParts:
        n_out, n_in = linear_size(file, kind)
        base = read_base(file, kind, (n_out, n_in), workplace(n_out * n_in, self._device))
        columns = read_columns(file, kind, base)
        factors = None if columns is None else inverse(columns.to(self._device))
        return LinearParts(self._packed(base).to(self._device), factors, bias)

    def _packed(self, base: BaseWeights) -> PackedWeights:
        if isinstance(base, GroupCodes):
            return pack_groups(base)
        if isinstance(base, TableCodes):
            return pack_tables(base)
        return planes_on(base.q, base.row_scale(), self._setting.packing, self._device)

    def _exact(
        self, index: int, packing: float, biases: Mapping[LinearKind, Tensor]
    ) -> dict[LinearKind, LinearParts]:
        linears: dict[LinearKind, LinearParts] = {}
        for kind, layer in int8_block(self._opened.reader, self._opened.spec, index).items():
            factors = layer.inverse_columns
            linears[kind] = LinearParts(
                planes_on(layer.q, layer.scale, packing, self._device),
                None if factors is None else factors.to(self._device),
                biases.get(kind),
            )
        return linears


def moved(norms: BlockNorms, device: torch.device) -> BlockNorms:
    """The same norms on a device."""
    parts = {field.name: getattr(norms, field.name) for field in fields(norms)}
    there: dict[str, Any] = {name: part if part is None else part.to(device) for name, part in parts.items()}
    return BlockNorms(**there)
