"""The embedding of tokens from a table that stays in host memory, of which a token takes a single row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.embedding_kernel import embed_kernel
from kernels.gpu.sampling.state import SamplerState
from kernels.gpu.step_state import StepState

# Every warp reads 256 bytes at once over the bus.
_BLOCK = 1024
_WARPS = 4


@dataclass(frozen=True, slots=True)
class HostTable:
    """value = codes * scale of the row * inverse_columns.

    codes: int8 [vocab, hidden] in page-locked host memory, which kernels read over the bus (device memory and
    plain memory of a CPU do as well). scale: float32 [vocab] and inverse_columns: float32 [hidden] or None,
    both on the device that computes.
    """

    codes: Tensor
    scale: Tensor
    inverse_columns: Tensor | None = None

    def __post_init__(self) -> None:
        if self.codes.dtype != torch.int8 or self.codes.dim() != 2 or not self.codes.is_contiguous():
            raise ValueError(f"an embedding of {list(self.codes.shape)} {self.codes.dtype} is not int8 rows")
        if self.scale.dtype != torch.float32 or self.scale.shape != (self.vocab,):
            raise ValueError(
                f"scales {list(self.scale.shape)} {self.scale.dtype} do not fit {self.vocab} rows"
            )
        factors = self.inverse_columns
        if factors is not None and (factors.dtype != torch.float32 or factors.shape != (self.hidden,)):
            raise ValueError(
                f"factors {list(factors.shape)} {factors.dtype} do not fit {self.hidden} columns"
            )

    @property
    def vocab(self) -> int:
        """Tokens, one a row."""
        return self.codes.shape[0]

    @property
    def hidden(self) -> int:
        """Values of a token."""
        return self.codes.shape[1]

    @property
    def device(self) -> torch.device:
        """Where rows are wanted."""
        return self.scale.device

    def rows(self, index: Tensor) -> Tensor:
        """The rows of token ids `index` int64 [n], on any device: float32 [n, hidden] on `device`.

        Rows are gathered where the codes are; IndexError for an id outside the table.
        """
        codes = self.codes[index.to(self.codes.device)].to(self.device)
        values = codes.float() * self.scale[index.to(self.device), None]
        return values if self.inverse_columns is None else values * self.inverse_columns


def embed_token(
    table: HostTable,
    state: StepState,
    stream: Tensor,
    *,
    scale: float = 1.0,
    sampler: SamplerState | None = None,
    asm: bool | None = None,
) -> None:
    """The row of `state.token` times `scale` into `stream` float32 [1, hidden], on the table's device.

    With `sampler`, a token at or behind the answer's first position is marked as seen. ValueError for a
    stream or sampler that does not fit the table.
    """
    if stream.dtype != torch.float32 or stream.numel() != table.hidden:
        raise ValueError(f"a stream {list(stream.shape)} {stream.dtype} does not take {table.hidden} values")
    if sampler is not None and sampler.vocab != table.vocab:
        raise ValueError(f"{sampler.vocab} tokens that can be seen do not fit {table.vocab} rows")
    factors = table.inverse_columns
    launch_chained(
        embed_kernel,
        (-(-table.hidden // _BLOCK),),
        table.codes,
        table.scale,
        table.scale if factors is None else factors,
        state.position,
        state.token,
        stream if sampler is None else sampler.seen,
        stream if sampler is None else sampler.settings,
        stream,
        table.vocab,
        table.hidden,
        scale,
        COLUMNS=factors is not None,
        SEEN=sampler is not None,
        BLOCK=_BLOCK,
        asm=asm,
        num_warps=_WARPS,
    )
