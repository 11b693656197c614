"""A decoder as a GPU holds it: low-bit or INT8-X weights in device memory, residuals and embedding in host
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import ResidualRows
from kernels.gpu.embedding import HostTable
from kernels.gpu.host_memory import HostMemory
from runtime.layers.base import LinearKind
from runtime.layers.device_products import Weights
from runtime.model.spec import LayerSpec, ModelSpec
from runtime.model.weights import BlockNorms


@dataclass(frozen=True, slots=True)
class LinearParts:
    """y = W (x * inverse_columns) + bias, W corrected by the rows of `residual` where there are some.

    inverse_columns: float32 [n_in], bias: float32 [n_out], both on the device; None: none.
    """

    weights: Weights
    inverse_columns: Tensor | None = None
    bias: Tensor | None = None
    residual: ResidualRows | None = None

    def __post_init__(self) -> None:
        rows, columns = self.weights.rows, self.weights.columns
        if self.inverse_columns is not None and self.inverse_columns.shape != (columns,):
            raise ValueError(f"factors {list(self.inverse_columns.shape)} do not fit {columns} inputs")
        if self.bias is not None and self.bias.shape != (rows,):
            raise ValueError(f"a bias {list(self.bias.shape)} does not fit {rows} outputs")
        if self.residual is not None and (self.residual.rows, self.residual.columns) != (rows, columns):
            raise ValueError(f"the residual does not fit {rows} x {columns} weights")

    def bytes_on_device(self) -> int:
        """Bytes of device memory; the residual's rows lie in host memory and do not count."""
        parts = (self.inverse_columns, self.bias, None if self.residual is None else self.residual.scale)
        return self.weights.nbytes + sum(part.nbytes for part in parts if part is not None)


# The four fused linears of a block.
Linears = Mapping[LinearKind, LinearParts]


@dataclass(frozen=True, slots=True)
class BlockParts:
    """One decoder block: its place-dependent settings, norms (float32, on the device) and linears."""

    layer: LayerSpec
    norms: BlockNorms
    linears: Linears

    def bytes_on_device(self) -> int:
        """Bytes of device memory."""
        names = ("attention", "mlp", "q", "k", "post_attention", "post_mlp")
        norms = [part for name in names if (part := getattr(self.norms, name)) is not None]
        linears = sum(linear.bytes_on_device() for linear in self.linears.values())
        return sum(norm.nbytes for norm in norms) + linears


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """Everything a token needs.

    embedding: rows in host memory. norm: float32 [hidden] of the last RMSNorm. head: n_out = vocabulary.
    ropes: cos and sin float32 [context, rotary_dim / 2] on the device, by `LayerSpec.rope`.
    held: page-locked memory that residuals and embedding lie in: it stays locked as long as somebody has it.
    """

    spec: ModelSpec
    context: int
    embedding: HostTable
    blocks: tuple[BlockParts, ...]
    norm: Tensor
    head: LinearParts
    ropes: tuple[tuple[Tensor, Tensor], ...]
    held: tuple[HostMemory, ...] = ()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.norm.device

    def bytes_on_device(self) -> int:
        """Bytes of device memory: weights, norms and rope tables."""
        ropes = sum(table.nbytes for pair in self.ropes for table in pair)
        blocks = sum(block.bytes_on_device() for block in self.blocks)
        return self.norm.nbytes + self.head.bytes_on_device() + ropes + blocks
