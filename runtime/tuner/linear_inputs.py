"""Single linears called as a decode step calls them, with inputs of their own."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from runtime.layers.base import LinearKind
from runtime.layers.device_linear import NOTHING, DeviceLinear, Prologue
from runtime.tuner.random_model import with_outliers

# (n_out, n_in) of linears.
Shapes = Mapping[LinearKind, tuple[int, int]]


class LinearInputs:
    """An input for every kind, with what is done to it first, and where results go.

    sums: float32 [1, rows] by kind, what o and down add to.
    """

    def __init__(
        self, shapes: Shapes, device: torch.device, rows: Mapping[LinearKind, int] | None = None
    ) -> None:
        """`rows`: of the products, where they have more than the linears that they stand for."""
        n_outs = {kind: n_out for kind, (n_out, _) in shapes.items()}
        n_ins = {kind: n_in for kind, (_, n_in) in shapes.items()}
        self._x = {kind: with_outliers(torch.randn(n, device=device)) for kind, n in n_ins.items()}
        self._gated = {kind: torch.zeros(1, n // 2, device=device) for kind, n in n_outs.items()}
        self.sums = {kind: torch.zeros(1, n, device=device) for kind, n in (rows or n_outs).items()}

    def run(self, kind: LinearKind, linear: DeviceLinear, corrected: bool) -> Tensor:
        """One call: prepare, product, and where it corrects the kernel that puts both together, unless that
        is a step's attention.
        """
        x, prologue = self._x[kind], self._prologue(kind)
        if kind == "qkv":
            return linear.multiply(x, prologue, corrected)
        if kind == "gate_up":
            return linear.gate(x, self._gated[kind], prologue, corrected)[0]
        return linear.add_to(self.sums[kind], x, prologue, corrected)

    def _prologue(self, kind: LinearKind) -> Prologue:
        x = self._x[kind]
        if kind in ("qkv", "gate_up"):
            return Prologue(norm=x)
        return Prologue(up=x) if kind == "down" else NOTHING
