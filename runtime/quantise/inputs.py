"""The inputs that a linear sees while the calibration texts are read, and their moments."""

from __future__ import annotations

from functools import cached_property

import torch

from kernels.dec import exact_mask


class InputMoments:
    """Inputs of one linear, float32 [tokens, n_in]; tokens with a value that is not finite are left out.

    They are kept as they are: even long calibration texts have fewer tokens than a large model's down has
    inputs, and what a token counts for depends on which of its channels get corrected.
    """

    def __init__(self, inputs: torch.Tensor) -> None:
        inputs = inputs.float()
        self.inputs = inputs[torch.isfinite(inputs).all(dim=1)]

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.inputs)

    @cached_property
    def mean_abs(self) -> torch.Tensor:
        """float32 [n_in]; 0 without tokens."""
        return self.inputs.abs().sum(0) / max(self.tokens, 1)

    @cached_property
    def mean_square(self) -> torch.Tensor:
        """float32 [n_in]; 0 without tokens."""
        return self.inputs.square().sum(0) / max(self.tokens, 1)

    def second_moment(self, columns: torch.Tensor | None = None, k_chunk: int = 0) -> torch.Tensor:
        """Mean of x' x'^T, float32 [n_in, n_in], x' the inputs divided by `columns`.

        With `k_chunk`, of what the correction leaves to the base: per token the largest channels are zero.
        """
        scaled = self.inputs if columns is None else self.inputs / columns
        if k_chunk:
            scaled = scaled.masked_fill(exact_mask(scaled, k_chunk), 0)
        return scaled.t() @ scaled / max(self.tokens, 1)
