"""`DenseWeights`: a bf16 matrix as the dense product reads it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """matrix: bf16 [rows, columns], contiguous."""

    matrix: Tensor

    def __post_init__(self) -> None:
        if self.matrix.dtype != torch.bfloat16 or self.matrix.dim() != 2 or not self.matrix.is_contiguous():
            raise ValueError("dense weights are a contiguous bf16 matrix")
        if self.columns % 8:
            raise ValueError(f"dense rows are read in parts of 8 columns, which {self.columns} are not")

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.matrix.shape[0]

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.matrix.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the matrix is."""
        return self.matrix.device

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return self.matrix.nbytes
