"""Base weights by look-up: every output row has its own table of values (SqueezeLLM, Kim et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class TableCodes:
    """Codes uint8 [n_out, n_in] below 2**bits; table float32 [n_out, 2**bits], exact in bfloat16, finite.

    A weight is its row's entry at its code.
    """

    bits: int
    codes: torch.Tensor
    table: torch.Tensor

    def __post_init__(self) -> None:
        if self.bits not in (3, 4):
            raise ValueError(f"a base has 3 or 4 bits, not {self.bits}")
        entries = (self.codes.shape[0], 2**self.bits)
        if tuple(self.table.shape) != entries:
            raise ValueError(f"a table of {list(self.table.shape)} must be {list(entries)}")


def dequantise_table(base: TableCodes) -> torch.Tensor:
    """The base as float32 [n_out, n_in]."""
    return base.table.gather(1, base.codes.long())
