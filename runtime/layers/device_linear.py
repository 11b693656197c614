"""A linear of a decode step on a GPU: input prepared, product with the fetch in it, the sum of both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.dec.correction import add_correction, gate_corrected
from kernels.gpu.dec.fetch import Fetch, FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.selection import Selection, new_selection
from kernels.gpu.dense.product import dense_gate, dense_product
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.digits import Extras
from kernels.gpu.prepare import MOST_VECTORS, Prepared, new_prepared, prepare
from kernels.gpu.product import Epilogue, ProductConfig
from runtime.layers.device_products import Weights, extras_of, multiply_prepared

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
    """What happens to an input first: RMSNorm with weight `norm` [n_in] and `eps`, or silu(x) * up, or with
    `gelu` gelu(x) * up.
    """

    norm: Tensor | None = None
    up: Tensor | None = None
    eps: float = EPS
    gelu: bool = False


NOTHING = Prologue()


class DeviceLinear:
    """y = W x + bias with W = (base + residual) / columns: base on the device, residual in host memory."""

    def __init__(
        self,
        weights: Weights,
        buffers: DeviceBuffers,
        *,
        inverse_columns: Tensor | None = None,
        bias: Tensor | None = None,
        residual: ResidualRows | None = None,
        fetching: FetchConfig | None = None,
        partial: Tensor | None = None,
        config: ProductConfig | None = None,
    ) -> None:
        """`inverse_columns` float32 [n_in]: what inputs are multiplied with. `fetching`: how the residual's
        rows are read; `config`: how the product is started; None: the kernels' own choice. `partial`: of
        another linear of this kind, which corrects at another time (`Fetch.partial`).
        """
        if isinstance(weights, DenseWeights) and not (residual is None and inverse_columns is None):
            raise ValueError("dense weights have neither a residual nor column factors")
        self.weights, self.buffers, self._config, self._bias = weights, buffers, config, bias
        self._extras = Extras.NOTHING if isinstance(weights, DenseWeights) else extras_of(weights)
        self.n_out, self.n_in = weights.rows, weights.columns
        self.inverse_columns = inverse_columns
        self.fetch = None if residual is None else new_fetch(residual, buffers.selection, fetching, partial)

    def decode(self, x: Tensor, prologue: Prologue = NOTHING, corrected: bool = True) -> Tensor:
        """One token: x [1, n_in], or [n_in] -> [1, n_out] in the shared result buffer.

        `corrected` False leaves selection, fetch and sum out, and with them what being ready costs.
        """
        out = self.multiply(x, prologue, corrected)
        if fetch := self._fetch(corrected):
            add_correction(out, fetch)
        return out

    def multiply(self, x: Tensor, prologue: Prologue = NOTHING, corrected: bool = True) -> Tensor:
        """As `decode`, but what was fetched stays in `fetch.partial` for whoever reads the result."""
        return self._product(x, self.buffers.out, prologue, self._fetch(corrected), add=False)

    def add_to(
        self, stream: Tensor, x: Tensor, prologue: Prologue = NOTHING, corrected: bool = True
    ) -> Tensor:
        """Add the product with x, and its correction, to `stream` [1, n_out]; gives it."""
        fetch = self._fetch(corrected)
        self._product(x, stream, prologue, fetch, add=True)
        return stream if fetch is None else add_correction(stream, fetch)

    def gate(
        self, x: Tensor, gated: Tensor, prologue: Prologue = NOTHING, corrected: bool = True
    ) -> tuple[Tensor, Prologue]:
        """What the next linear takes, and its prologue, if the two halves of the product with x are a gate
        and what it lets through: silu or, with the prologue's `gelu`, gelu(first) * second.

        `gated` [1, n_out / 2] is where they are put together, unless the next one's prologue can do it.
        """
        if isinstance(self.weights, DenseWeights):
            gelu, bias = prologue.gelu, self._bias
            dense_gate(self.weights, x, gated, norm=prologue.norm, eps=prologue.eps, gelu=gelu, bias=bias)
            return gated, NOTHING
        out = self.multiply(x, prologue, corrected)[:, : 2 * gated.numel()]
        if fetch := self._fetch(corrected):
            return gate_corrected(out, fetch, gated, gelu=prologue.gelu), NOTHING
        first, second = out[0].chunk(2)
        return first, Prologue(up=second, gelu=prologue.gelu)

    def few(self, x: Tensor, prologue: Prologue = NOTHING) -> Tensor:
        """Up to 8 tokens without correction: x [tokens, n_in] -> [tokens, n_out], a new tensor."""
        if not 1 <= x.shape[0] <= MOST_VECTORS or isinstance(self.weights, DenseWeights):
            raise ValueError(f"few tokens are 1 to {MOST_VECTORS} with packed weights, not {x.shape[0]}")
        prepared = self._prepare(x, prologue, None, None)
        out = torch.empty(x.shape[0], self.n_out, dtype=self.buffers.out.dtype, device=x.device)
        return multiply_prepared(self.weights, prepared, out, None, self._config, Epilogue(bias=self._bias))

    def bytes_in_memory(self) -> int:
        """Bytes on the device; the residual's rows lie in host memory and do not count."""
        scale = None if self.fetch is None else self.fetch.residual.scale
        parts = (scale, self.inverse_columns, self._bias)
        return self.weights.nbytes + sum(part.nbytes for part in parts if part is not None)

    def _fetch(self, corrected: bool) -> Fetch | None:
        return self.fetch if corrected else None

    def _product(self, x: Tensor, out: Tensor, prologue: Prologue, fetch: Fetch | None, add: bool) -> Tensor:
        epilogue = Epilogue(add, self._bias)
        if isinstance(self.weights, DenseWeights):
            if prologue.up is not None:
                raise ValueError("a dense product gates its outputs, not its inputs")
            norm, eps = prologue.norm, prologue.eps
            return dense_product(self.weights, x, out, norm=norm, eps=eps, epilogue=epilogue)
        selection = None if fetch is None else self.buffers.selection
        prepared = self._prepare(x, prologue, selection, self.buffers.prepared)
        return multiply_prepared(self.weights, prepared, out, fetch, self._config, epilogue)

    def _prepare(
        self, x: Tensor, prologue: Prologue, selection: Selection | None, out: Prepared | None
    ) -> Prepared:
        return prepare(
            x,
            norm=prologue.norm,
            eps=prologue.eps,
            up=prologue.up,
            gelu=prologue.gelu,
            factors=self.inverse_columns,
            selection=selection,
            out=out,
            extras=self._extras,
        )
