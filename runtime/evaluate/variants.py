"""From a block's source weights to the linears of every row, quantised once per block."""

from __future__ import annotations

from functools import cached_property

import torch

from kernels.dec import dequantise, dequantise_residual, quantise_residual, quantise_rtn
from runtime.calibration import InputStatistics
from runtime.evaluate.coder import Coder
from runtime.evaluate.linear import Corrected, int8_rounded, mask_rule
from runtime.evaluate.request import Request, Row
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.dense import Dense

Parts = dict[LinearKind, tuple[torch.Tensor, ...]]


class BlockVariants:
    """One block's weights in every form the rows need; `coder` is there for the int8x base."""

    def __init__(
        self,
        request: Request,
        index: int,
        parts: Parts,
        statistics: dict[LinearKind, InputStatistics] | None,
        coder: Coder | None = None,
    ) -> None:
        self._request, self._index, self._parts, self._statistics = request, index, parts, statistics
        self._coder = coder

    def reference(self) -> dict[LinearKind, Linear]:
        """The weights as they are."""
        return {kind: Dense(torch.cat(self._parts[kind])) for kind in LINEAR_KINDS}

    def row(self, row: Row) -> dict[LinearKind, Linear]:
        """The weights of a row."""
        if row.base == "bf16":
            return self.reference()
        if row.base == "int8":
            return {kind: Dense(self._int8(kind)) for kind in LINEAR_KINDS}
        if self._coder is not None:
            return {
                kind: Dense(self._coder.weight(self._index, kind, self._parts[kind])) for kind in LINEAR_KINDS
            }
        return {kind: self._low_bit(kind, row.k_chunk) for kind in LINEAR_KINDS}

    def _int8(self, kind: LinearKind) -> torch.Tensor:
        return torch.cat([int8_rounded(part, self._request.scale) for part in self._parts[kind]])

    def _low_bit(self, kind: LinearKind, k_chunk: int) -> Linear:
        base, residual = self._quantised[kind]
        if k_chunk == 0:
            return Dense(base)
        statistics = self._statistics[kind] if self._statistics else None
        seed = hash((self._request.seed, self._index, LINEAR_KINDS.index(kind), k_chunk))
        return Corrected(base, residual, k_chunk, mask_rule(self._request.select, statistics, seed))

    @cached_property
    def _quantised(self) -> dict[LinearKind, tuple[torch.Tensor, torch.Tensor]]:
        return {kind: self._quantise(kind) for kind in LINEAR_KINDS}

    def _quantise(self, kind: LinearKind) -> tuple[torch.Tensor, torch.Tensor]:
        weight = torch.cat(self._parts[kind])
        base = dequantise(quantise_rtn(weight, int(self._request.bits or 4)))
        return base, dequantise_residual(quantise_residual(weight - base))
