"""Linears alone, with more base rows than residual outputs: they stand for devices that are not here.

A device whose memory is slower beside its link takes longer for a base product and as long for a fetch: on an
H200, 2.7 times the rows stand for an RTX 4090 and 6.7 for an RTX 4050 Laptop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch

from kernels.gpu.dec.fetch import FetchConfig
from runtime.engine.gpu.linears import BoundBlock, Fetching
from runtime.layers.base import LinearKind
from runtime.layers.device_linear import DeviceBuffers, DeviceLinear, new_buffers
from runtime.layers.device_products import product_warps
from runtime.tuner.device_block import Call, copies_needed, in_turn
from runtime.tuner.fetching import FetchShape, launches
from runtime.tuner.linear_inputs import LinearInputs, Shapes
from runtime.tuner.random_model import random_residual
from runtime.tuner.random_weights import MakeWeights, makers


class LinearBlock:
    """Random weights of linears' shapes in copies that no cache holds, called as in a decode step but with
    inputs of their own, and without attention. Takes the place of a `DeviceBlock` in a measurer.
    """

    def __init__(
        self,
        shapes: Shapes,
        makes: Sequence[MakeWeights],
        device: torch.device,
        ratio: float = 1.0,
        copies: int | None = None,
        pinned: bool = True,
    ) -> None:
        """As of `DeviceBlock`; `ratio`: rows of the products over outputs of the residuals."""
        rows = {kind: _more_rows(n_out, ratio) for kind, (n_out, _) in shapes.items()}
        made = [{kind: make(rows[kind], shapes[kind][1]) for kind in shapes} for make in makes]
        self.copies = copies or copies_needed(sum(weights.nbytes for weights in made[0].values()))
        self.shapes = {kind: FetchShape(*shapes[kind], product_warps(w)) for kind, w in made[0].items()}
        self._weights = [in_turn(made, i) for i in range(self.copies)]
        self._residuals = {kind: random_residual(*shape, device, pinned) for kind, shape in shapes.items()}
        self._buffers: dict[LinearKind, DeviceBuffers] = {
            kind: new_buffers(shapes[kind][1], rows[kind], device) for kind in shapes
        }
        self._inputs = LinearInputs(shapes, device, rows)

    @property
    def results(self) -> tuple[torch.Tensor, ...]:
        """What products are stored in or added to."""
        return (*(buffers.out for buffers in self._buffers.values()), *self._inputs.sums.values())

    def start(self, table: Mapping[LinearKind, int]) -> None:
        """k_chunk by kind for every graph, and nothing in the sums."""
        for kind, buffers in self._buffers.items():
            buffers.set_k_chunk(table.get(kind, 0))
        for tensor in self.results:
            tensor.zero_()

    def linears(self, fetching: Fetching) -> list[BoundBlock]:
        """A linear of every kind for every copy; those that `fetching` does not name are not corrected."""
        return [
            {kind: self._linear(kind, index, fetching.get(kind)) for kind in self.shapes}
            for index in range(self.copies)
        ]

    def calls(self, fetching: Fetching, again: LinearKind | None = None) -> list[Call]:
        """Every linear of every copy, in a token's order; `again`: this kind's of another copy after them."""
        found: list[Call] = []
        for index, block in enumerate(self.linears(fetching)):
            found += [partial(self._inputs.run, kind, block[kind], kind in fetching) for kind in block]
            if again is not None:
                other = self._linear(again, (index + self.copies // 2) % self.copies, None)
                found.append(partial(self._inputs.run, again, other, False))
        return found

    def _linear(self, kind: LinearKind, index: int, fetching: FetchConfig | None) -> DeviceLinear:
        return DeviceLinear(
            self._weights[index][kind],
            self._buffers[kind],
            residual=None if fetching is None else self._residuals[kind],
            fetching=fetching,
        )


def linear_tasks(
    base: str, shapes: Shapes, ratios: Sequence[float], device: torch.device, link_gb_s: float
) -> Iterator[Call]:
    """Every kernel of blocks with these ratios, to compile it."""
    makes = makers(base, device)
    for ratio in ratios:
        for kind, shape in shapes.items():
            yield partial(_run_ways, {kind: shape}, makes, device, ratio, link_gb_s)


def _run_ways(
    shapes: Shapes, makes: Sequence[MakeWeights], device: torch.device, ratio: float, link_gb_s: float
) -> None:
    block = LinearBlock(shapes, makes, device, ratio, copies=len(makes), pinned=False)
    block.start({})
    ways = [
        {kind: config}
        for kind, shape in block.shapes.items()
        for config in launches(shape, link_gb_s).values()
    ]
    for fetching in ({}, *ways):
        for call in block.calls(fetching):
            call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _more_rows(n_out: int, ratio: float) -> int:
    return round(n_out * ratio / 32) * 32 if ratio != 1.0 else n_out
