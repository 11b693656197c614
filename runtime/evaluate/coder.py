"""The int8x base of an evaluation: weights as INT8-X would hold them, and the bits they take."""

from __future__ import annotations

import torch

from kernels.int8x import Quantised
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import code_matrix
from runtime.layers.base import LinearKind
from runtime.rate import Rounder


class Coder:
    """Rounds and codes matrices; counts what they take, scales and tables included."""

    def __init__(self, rounder: Rounder) -> None:
        self._rounder, self._bits, self._weights = rounder, 0, 0

    @property
    def bits_per_weight(self) -> float:
        """Bits per weight of everything coded so far."""
        return self._bits / max(self._weights, 1)

    def weight(self, block: int, kind: LinearKind, parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """The dequantised fused linear, float32 [n_out, n_in]."""
        first, rows = 0, []
        for part in parts:
            matrix = self._rounder.round(block, kind, part, first)
            self._count(matrix)
            rows.append(matrix.dequantise())
            first += len(part)
        return torch.cat(rows)

    def _count(self, matrix: Quantised) -> None:
        entry, _ = code_matrix(matrix, CodecChoice())
        self._bits += entry.stored_bits
        self._weights += entry.weights
