"""The inputs that a linear sees while the calibration texts are read, and their moments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch

from kernels.dec import chunk_bounds, chunk_share
from kernels.int8x.pool import for_each
from runtime.sensitivity.fisher import compute_type

TOKENS_AT_ONCE = 1024
# Of a token's sum of squares: a larger one is an overflow on its way, and would drown all others' moments.
MOST_SQUARES = 1e30


class InputMoments:
    """Inputs of one linear, floating [tokens, n_in]; tokens with a value that is not finite, or too large to
    be squared, are left out.

    They are kept as they are: even long calibration texts have fewer tokens than a large model's down has
    inputs, and what a token counts for depends on which of its channels get corrected.
    """

    def __init__(self, inputs: torch.Tensor) -> None:
        parts = [part.float().square().sum(1) for part in inputs.split(TOKENS_AT_ONCE)]
        usable = torch.cat(parts) < MOST_SQUARES
        self.inputs = inputs if bool(usable.all()) else inputs[usable]

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.inputs)

    @cached_property
    def mean_abs(self) -> torch.Tensor:
        """float32 [n_in]; 0 without tokens."""
        return self.inputs.abs().sum(0, dtype=torch.float32) / max(self.tokens, 1)

    @cached_property
    def mean_square(self) -> torch.Tensor:
        """float32 [n_in]; 0 without tokens."""
        parts = self.inputs.split(TOKENS_AT_ONCE)
        return torch.stack([part.float().square().sum(0) for part in parts]).sum(0) / max(self.tokens, 1)

    def second_moment(
        self, columns: torch.Tensor | None = None, k_chunks: Sequence[int] = (0,)
    ) -> torch.Tensor:
        """Mean of x' x'^T, float32 [n_in, n_in], x' the inputs divided by `columns`.

        The mean is over `k_chunks` too, each standing for what its correction leaves to the base: per token
        the largest channels are zero.
        Products are rounded to bfloat16 where the processor multiplies it, sums over many tokens are not.
        """
        n_in, dtype = self.inputs.shape[1], compute_type()
        total = torch.zeros(n_in, n_in)
        for part in self.inputs.split(TOKENS_AT_ONCE):
            scaled = part.float() if columns is None else part / columns
            for k_chunk in k_chunks:
                left = uncorrected(scaled, k_chunk).to(dtype)
                total += left.t() @ left
        return total.div_(max(self.tokens, 1) * len(k_chunks))


def uncorrected(x: torch.Tensor, k_chunk: int) -> torch.Tensor:
    """x float32 [tokens, n_in] with the largest magnitudes of every chunk zero, all of equals at the edge."""
    if k_chunk == 0:
        return x
    left = x.clone()
    values, magnitude = left.numpy(), x.abs().numpy()

    def run(token: int) -> None:
        part = slice(token, token + TOKENS_AT_ONCE // 8)
        for start, stop in chunk_bounds(x.shape[1]):
            if k := chunk_share(k_chunk, stop - start):
                rows = magnitude[part, start:stop]
                edge = np.partition(rows, stop - start - k, axis=1)[:, stop - start - k, None]
                values[part, start:stop][rows >= edge] = 0

    for_each(run, range(0, len(x), TOKENS_AT_ONCE // 8))
    return left
