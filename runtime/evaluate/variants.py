"""From a block's base to the linears of every row that stands on it."""

from __future__ import annotations

import torch

from kernels.dec import dequantise_residual, quantise_residual
from runtime.calibration import InputStatistics
from runtime.evaluate.bases import Made, Maker
from runtime.evaluate.inputs import BlockSource
from runtime.evaluate.linear import Corrected, Recall, Scaled, mask_rule
from runtime.evaluate.request import Request, ResidualBits, Row
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind


class BlockBase:
    """One base of one block: made once; holds one width of residual at a time."""

    def __init__(self, source: BlockSource, make: Maker, request: Request) -> None:
        self._source, self._request = source, request
        self.made = make(source)
        self._bases = {kind: self._on_device(made) for kind, made in self.made.items()}
        self._residuals: dict[LinearKind, torch.Tensor] = {}
        self._width: ResidualBits | None = None
        self._statistics: dict[LinearKind, InputStatistics] = {}

    def linears(self, row: Row, recall: Recall) -> dict[LinearKind, Linear]:
        """The linears of a row; rows of one residual width should follow each other."""
        if not row.k_chunk and not (row.base.correctable and self._request.corrects_prompt):
            return dict[LinearKind, Linear](self._bases)
        if row.residual != self._width:
            self._residuals = {kind: self._residual(kind, row.residual) for kind in LINEAR_KINDS}
            self._width = row.residual
        return {kind: self._corrected(kind, row, recall) for kind in LINEAR_KINDS}

    def _corrected(self, kind: LinearKind, row: Row, recall: Recall) -> Corrected:
        request, device = self._request, self._source.device
        statistics = self._seen(kind) if row.k_chunk and row.select in ("bucket", "static") else None
        seed = hash((request.seed, self._source.index, LINEAR_KINDS.index(kind), row.k_chunk))
        rule = mask_rule(row.select if row.k_chunk else "exact", statistics, seed, device)
        base, residual = self._bases[kind], self._residuals[kind]
        prompt = request.prompt, request.prompt_correction
        return Corrected(base, residual, row.k_chunk, rule, recall, *prompt)

    def _on_device(self, made: Made) -> Scaled:
        columns = None if made.columns is None else made.columns.to(self._source.device)
        return Scaled(made.weight.to(self._source.device), columns)

    def _residual(self, kind: LinearKind, width: ResidualBits) -> torch.Tensor:
        made, weight = self.made[kind], torch.cat(self._source.parts[kind])
        lost = (weight if made.columns is None else weight * made.columns) - made.weight
        kept = lost if width == "exact" else dequantise_residual(quantise_residual(lost, width))
        return kept.contiguous().to(self._source.device)

    def _seen(self, kind: LinearKind) -> InputStatistics:
        if kind not in self._statistics:
            if self._source.inputs is None:
                raise ValueError("this selection needs calibration")
            self._statistics[kind] = self._source.inputs.statistics(kind, self.made[kind].columns)
        return self._statistics[kind]
