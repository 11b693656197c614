"""A model's linears bound to the buffers of a decode step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import FetchConfig, default_fetch_config
from runtime.engine.gpu.model import LinearParts, Linears
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_linear import DeviceBuffers, DeviceLinear, new_buffers
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape

# How the rows of a kind are fetched.
Fetching = Mapping[LinearKind, FetchConfig]
BoundBlock = dict[LinearKind, DeviceLinear]


@dataclass(frozen=True, slots=True)
class KindBuffers:
    """What all linears of a kind share, whatever their weights: digits, selection, result, partial sums."""

    step: DeviceBuffers
    partials: dict[tuple[int, int], Tensor]

    def bind(self, parts: LinearParts, fetching: FetchConfig | None) -> DeviceLinear:
        """The linear, with its residual fetched as told; by default as suits its shape."""
        config = None
        if parts.residual is not None:
            config = fetching or default_fetch_config(parts.residual)
        return DeviceLinear(
            parts.weights,
            self.step,
            inverse_columns=parts.inverse_columns,
            bias=parts.bias,
            residual=parts.residual,
            fetching=config,
            partial=None if config is None else self._partial(parts, config),
        )

    def _partial(self, parts: LinearParts, config: FetchConfig) -> Tensor:
        """One linear corrects after the other, so they need one array of a shape."""
        assert parts.residual is not None
        shape = (config.splits, 8 * parts.residual.row_words)
        if shape not in self.partials:
            self.partials[shape] = torch.zeros(shape, device=self.step.out.device)
        return self.partials[shape]


def new_kind_buffers(spec: ModelSpec, device: torch.device) -> dict[LinearKind, KindBuffers]:
    """Buffers for every kind of a model."""
    shapes = {kind: linear_shape(spec, kind) for kind in LINEAR_KINDS}
    return {kind: KindBuffers(new_buffers(n_in, n_out, device), {}) for kind, (n_out, n_in) in shapes.items()}


def bind_blocks(
    blocks: Iterable[Linears], buffers: Mapping[LinearKind, KindBuffers], fetching: Fetching
) -> list[BoundBlock]:
    """The linears of every block, bound."""
    return [
        {kind: buffers[kind].bind(block[kind], fetching.get(kind)) for kind in LINEAR_KINDS}
        for block in blocks
    ]
