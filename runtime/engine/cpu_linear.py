"""One linear of a decode step on the CPU: correction, product and the time they take."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from runtime.layers.correction import NOTHING, Correction


class ProductLayer(Protocol):
    """A layer that can run one token in bfloat16."""

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out]."""
        ...


class LinearInput:
    """Input buffers of one linear kind, shared by all blocks: n_in values in float32 and bfloat16."""

    def __init__(self, n_in: int) -> None:
        self.x = np.zeros(n_in, np.float32)
        # Allocated by torch: its products read whole cache lines and crash on numpy's 16-byte alignment.
        self.tensor = torch.zeros(1, n_in, dtype=torch.bfloat16)
        self.bits = self.tensor.view(torch.int16).numpy()[0]


class CpuLinear:
    """A layer bound to its input buffers, which hold its input times `inverse_columns` where it has them."""

    def __init__(self, layer: ProductLayer, source: LinearInput, bias: torch.Tensor | None) -> None:
        self._product, self._source = layer.product, source
        self.correction: Correction | None = getattr(layer, "correction", None)
        inverse: torch.Tensor | None = getattr(layer, "inverse_columns", None)
        self.inverse_columns = NOTHING if inverse is None else inverse.numpy()
        self.bias = NOTHING if bias is None else bias.contiguous().numpy()

    def product(self) -> np.ndarray:
        """Bits of the bfloat16 product, int16 [n_out]."""
        return self._product(self._source.tensor).view(torch.int16).numpy()[0]

    def correct(self) -> np.ndarray:
        """The correction, float32 [n_out], or an empty array."""
        correction = self.correction
        return NOTHING if correction is None else correction.stack.apply(correction.layer, self._source.x)
