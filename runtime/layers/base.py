"""The one interface of a linear layer, whatever its weights look like."""

from __future__ import annotations

from typing import Literal, Protocol

import torch

LinearKind = Literal["qkv", "o", "gate_up", "down"]
LINEAR_KINDS: tuple[LinearKind, ...] = ("qkv", "o", "gate_up", "down")


class Linear(Protocol):
    """y = W x with W [n_out, n_in] in some representation."""

    n_in: int
    n_out: int

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """Many tokens at once: x [tokens, n_in] -> [tokens, n_out], same dtype as x."""
        ...

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """One token: x [1, n_in] -> [1, n_out], same dtype as x."""
        ...

    def bytes_in_memory(self) -> int:
        """Bytes this layer holds."""
        ...
