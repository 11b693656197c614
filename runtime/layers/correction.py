"""The DecDEC correction of one linear on the CPU: residual, bucket bounds and the live channel counts."""

from __future__ import annotations

import numpy as np
import torch

from kernels import cpu
from kernels.dec.chunks import chunk_bounds, chunk_share
from kernels.dec.residual import Residual
from kernels.dec.selection import bucket_bounds

NOTHING = np.empty(0, np.float32)


class Correction:
    """Holds residual codes int8 [n_in, n_out] in host memory and applies `k_chunk` channels per 1024."""

    def __init__(self, residual: Residual, profile: torch.Tensor) -> None:
        """profile float32 [n_in]: per chunk, calibrated magnitudes in descending order."""
        self.codes, self.scale = residual.codes.contiguous(), residual.scale.contiguous()
        self._profile = profile
        self._bounds = chunk_bounds(self.codes.shape[0])
        n_in, n_out = self.codes.shape
        self._arrays = (
            self.codes.numpy(),
            self.scale.numpy(),
            np.empty(n_in, np.uint8),
            np.empty(n_in, np.int32),
        )
        self._out = np.empty(n_out, np.float32)
        self._starts = np.array([a for a, _ in self._bounds] + [n_in], np.int64)
        self.set_k_chunk(0)

    @property
    def channels(self) -> int:
        """Input channels corrected per token at the present k_chunk."""
        return int(self._counts.sum())

    def set_k_chunk(self, k_chunk: int) -> None:
        """Change the table between two tokens."""
        counts = [chunk_share(k_chunk, b - a) for a, b in self._bounds]
        edges = [
            bucket_bounds(self._profile[a:b], max(k, 1))
            for (a, b), k in zip(self._bounds, counts, strict=True)
        ]
        self.k_chunk = k_chunk
        self._counts = np.array(counts, np.int64)
        self._top = np.array([top for top, _ in edges], np.float32)
        self._middle = np.array([middle for _, middle in edges], np.float32)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Correction float32 [n_out] for x float32 [n_in]; empty when nothing is selected. Reused buffer."""
        if self.k_chunk == 0:
            return NOTHING
        taken = cpu.correct(x, self._starts, self._counts, self._top, self._middle, *self._arrays, self._out)
        return self._out if taken else NOTHING

    def bytes_in_memory(self) -> int:
        """Bytes of residual codes and scales."""
        return self.codes.nbytes + self.scale.nbytes
