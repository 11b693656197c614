"""The DecDEC correction on the CPU: residuals of all layers of a kind, bucket bounds, live channel counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels import cpu
from kernels.cpu.halves import pack_halves, unpack_halves
from kernels.dec.chunks import chunk_bounds, chunk_share
from kernels.dec.residual import Residual
from kernels.dec.selection import bucket_bounds

NOTHING = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Table:
    """Channels by chunk, and the bounds of their buckets by layer and chunk."""

    k_chunk: int
    counts: list[int]
    edges: np.ndarray


class CorrectionStack:
    """Residuals of one linear kind, layer by layer, in host memory; `k_chunk` holds for all of them.

    `not_finite` counts the corrections left out because an input was NaN or infinite.
    """

    def __init__(self, layers: int, n_in: int, n_out: int) -> None:
        half = (n_out + 1) // 2
        self.n_in, self.n_out, self.k_chunk, self.not_finite = n_in, n_out, 0, 0
        self.codes = torch.empty(layers, n_in, half, dtype=torch.uint8)
        # Scales are read with every correction from cold memory; half the bytes cost 0.2 % of a correction.
        self.scale = torch.empty(layers, n_out, dtype=torch.bfloat16)
        self._chunks = chunk_bounds(n_in)
        self._profiles = torch.zeros(layers, n_in)
        self._counts = np.zeros((layers, len(self._chunks)), np.int64)
        self._edges = np.zeros((layers, len(self._chunks), 2), np.float32)
        self._scratch = (np.empty(n_in, np.uint8), np.empty(n_in, np.int32), np.empty(2 * half, np.float32))
        bits = self.scale.view(torch.int16).numpy()
        self._arrays = (self._counts, self._edges, self.codes.numpy(), bits, *self._scratch)
        self._result = self._scratch[-1][:n_out]

    def add(self, layer: int, residual: Residual, profile: torch.Tensor) -> Correction:
        """Fill a layer's place. profile float32 [n_in]: per chunk, calibrated magnitudes, descending."""
        self.codes[layer] = pack_halves(residual.codes)
        self.scale[layer] = residual.scale
        self._profiles[layer] = profile
        return Correction(self, layer)

    def table(self, k_chunk: int) -> Table:
        """What so many channels per chunk mean in every layer. Changes nothing."""
        counts = [chunk_share(k_chunk, stop - start) for start, stop in self._chunks]
        edges = np.empty_like(self._edges)
        for layer, profile in enumerate(self._profiles):
            for j, (start, stop) in enumerate(self._chunks):
                edges[layer, j] = bucket_bounds(profile[start:stop], max(counts[j], 1))
        return Table(k_chunk, counts, edges)

    def set_k_chunk(self, k_chunk: int) -> None:
        """Change the table between two tokens, in every layer."""
        self.use(self.table(k_chunk))

    def use(self, table: Table) -> None:
        """Put a table in force between two tokens. Needs no memory, so it does not fail."""
        self.k_chunk = table.k_chunk
        self._counts[:], self._edges[:] = table.counts, table.edges

    @property
    def channels(self) -> int:
        """Input channels corrected per token in one layer."""
        return int(self._counts[0].sum())

    def apply(self, layer: int, x: np.ndarray) -> np.ndarray:
        """Correction float32 [n_out] for x float32 [n_in]; empty when nothing is selected. Reused buffer."""
        if self.k_chunk == 0:
            return NOTHING
        selected = cpu.correct(x, layer, *self._arrays)
        if selected > 0:
            return self._result
        self.not_finite += selected == cpu.NOT_FINITE
        return NOTHING


class Correction:
    """One layer of a stack."""

    def __init__(self, stack: CorrectionStack, layer: int) -> None:
        self.stack, self.layer = stack, layer

    @classmethod
    def alone(cls, residual: Residual, profile: torch.Tensor) -> Correction:
        """A layer with a stack of its own."""
        n_in, n_out = residual.codes.shape
        return CorrectionStack(1, n_in, n_out).add(0, residual, profile)

    def residual(self) -> Residual:
        """Codes int8 [n_in, n_out] and scales, unpacked for many tokens at once."""
        codes = unpack_halves(self.stack.codes[self.layer], self.stack.n_out)
        return Residual(codes, self.stack.scale[self.layer].float())

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Correction float32 [n_out] for x float32 [n_in]; empty when nothing is selected. Reused buffer."""
        return self.stack.apply(self.layer, x)

    def bytes_in_memory(self) -> int:
        """Bytes of residual codes and scales."""
        return self.stack.codes[self.layer].nbytes + self.stack.scale[self.layer].nbytes
