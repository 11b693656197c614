"""A linear of a decode step on a GPU: input prepared, product with the fetch in it, the sum of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.dec.correction import add_correction, gate_corrected
from kernels.gpu.dec.fetch import Fetch, FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.selection import Selection, new_selection
from kernels.gpu.lowbit.group_product import default_config, group_product
from kernels.gpu.lowbit.groups import DeviceGroups
from kernels.gpu.lowbit.table_product import default_table_config, table_product
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.prepare import MOST_VECTORS, Prepared, new_prepared, prepare
from kernels.gpu.product import ProductConfig, product
from kernels.gpu.product import default_config as default_planes_config

Weights = DeviceGroups | DeviceTables | DevicePlanes
EPS = 1e-6


@dataclass(frozen=True, slots=True)
class DeviceBuffers:
    """What the linears of one kind share, block after block: digits, list of channels, result, k_chunk.

    `selection.control` holds k_chunk in device memory, so that one captured graph serves every table.
    """

    prepared: Prepared
    selection: Selection
    out: Tensor

    def set_k_chunk(self, k_chunk: int) -> None:
        """Correct k_chunk channels of every 1024, in every linear that has these buffers."""
        self.selection.set_k_chunk(k_chunk)


def new_buffers(
    n_in: int, n_out: int, device: torch.device, dtype: torch.dtype = torch.float32
) -> DeviceBuffers:
    """Buffers for one vector of n_in and its product of n_out in `dtype` (float32 or bfloat16)."""
    return DeviceBuffers(
        new_prepared(1, n_in, device),
        new_selection(n_in, device),
        torch.empty(1, n_out, dtype=dtype, device=device),
    )


@dataclass(frozen=True, slots=True)
class Prologue:
    """What happens to an input first: RMSNorm with weight `norm` [n_in] and `eps`, or silu(x) * up."""

    norm: Tensor | None = None
    up: Tensor | None = None
    eps: float = EPS


NOTHING = Prologue()


class DeviceLinear:
    """y = W x with W = (base + residual) / columns: the base on the device, the residual in host memory."""

    def __init__(
        self,
        weights: Weights,
        buffers: DeviceBuffers,
        *,
        columns: Tensor | None = None,
        residual: ResidualRows | None = None,
        fetching: FetchConfig | None = None,
        config: ProductConfig | None = None,
    ) -> None:
        """`columns` float32 [n_in]: factors of the base, by which inputs are divided. `fetching`: how the
        residual's rows are read; `config`: how the product is started; None: the kernels' own choice.
        """
        self.weights, self.buffers, self._config = weights, buffers, config
        self.n_out, self.n_in = weights.rows, weights.columns
        self.inverse_columns = None if columns is None else columns.float().reciprocal().to(weights.device)
        self.fetch = None if residual is None else new_fetch(residual, buffers.selection, fetching)

    def decode(self, x: Tensor, prologue: Prologue = NOTHING, corrected: bool = True) -> Tensor:
        """One token: x [1, n_in], or [n_in] -> [1, n_out] in the shared result buffer.

        `corrected` False leaves selection, fetch and sum out, and with them what being ready costs.
        """
        out = self.multiply(x, prologue, corrected)
        if corrected and self.fetch is not None:
            add_correction(out, self.fetch)
        return out

    def multiply(self, x: Tensor, prologue: Prologue = NOTHING, corrected: bool = True) -> Tensor:
        """As `decode`, but what was fetched stays in `fetch.partial` for whoever reads the result."""
        fetch = self.fetch if corrected else None
        prepared = self._prepare(
            x, prologue, self.buffers.selection if fetch else None, self.buffers.prepared
        )
        return multiply_prepared(self.weights, prepared, self.buffers.out, fetch, self._config)

    def add_to(self, stream: Tensor, corrected: bool = True) -> Tensor:
        """Add what `multiply` gave, and its correction, to `stream` [1, n], the first n outputs; gives it."""
        out = self.buffers.out[:, : stream.numel()]
        if corrected and self.fetch is not None:
            return add_correction(out, self.fetch, stream=stream)
        return stream.add_(out)

    def gate(self, gated: Tensor) -> Tensor:
        """silu(first half) * second half of what `multiply` gave, corrected, into `gated` [1, n_out / 2].

        Without a correction the next linear's prologue does the same with less.
        """
        if self.fetch is None:
            raise ValueError("a linear without a residual is gated by the next one's prologue")
        return gate_corrected(self.buffers.out[:, : 2 * gated.numel()], self.fetch, gated)

    def few(self, x: Tensor, prologue: Prologue = NOTHING) -> Tensor:
        """Up to 8 tokens without correction: x [tokens, n_in] -> [tokens, n_out], a new tensor."""
        if not 1 <= x.shape[0] <= MOST_VECTORS:
            raise ValueError(f"few tokens are 1 to {MOST_VECTORS}, not {x.shape[0]}")
        prepared = self._prepare(x, prologue, None, None)
        out = torch.empty(x.shape[0], self.n_out, dtype=self.buffers.out.dtype, device=x.device)
        return multiply_prepared(self.weights, prepared, out, None, self._config)

    def bytes_in_memory(self) -> int:
        """Bytes on the device; the residual's rows lie in host memory and do not count."""
        scale = 0 if self.fetch is None else self.fetch.residual.scale.nbytes
        columns = 0 if self.inverse_columns is None else self.inverse_columns.nbytes
        return self.weights.nbytes + scale + columns

    def _prepare(
        self, x: Tensor, prologue: Prologue, selection: Selection | None, out: Prepared | None
    ) -> Prepared:
        return prepare(
            x,
            norm=prologue.norm,
            eps=prologue.eps,
            up=prologue.up,
            factors=self.inverse_columns,
            selection=selection,
            out=out,
        )


def multiply_prepared(
    weights: Weights,
    prepared: Prepared,
    out: Tensor,
    fetch: Fetch | None = None,
    config: ProductConfig | None = None,
) -> Tensor:
    """The product of whatever kind of weights, into `out` [used, n_out]."""
    options: dict[str, Any] = {"out": out, "config": config}
    if fetch is not None:
        options["fetch"] = fetch
    if isinstance(weights, DeviceGroups):
        return group_product(weights, prepared, **options)
    if isinstance(weights, DeviceTables):
        return table_product(weights, prepared, **options)
    return product(weights, prepared, **options)


def product_warps(weights: Weights) -> int:
    """Warps in a program of the product, when its launch is the kernels' own choice."""
    if isinstance(weights, DeviceGroups):
        return default_config(weights).warps
    if isinstance(weights, DeviceTables):
        return default_table_config(weights).warps
    return default_planes_config(weights).warps
