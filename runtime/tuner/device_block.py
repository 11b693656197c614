"""The linears of a decoder block on a GPU, in copies that no cache holds, as a list of calls to capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.dec.fetch import WORD_OUTPUTS, FetchConfig, ResidualRows
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_linear import NOTHING, DeviceBuffers, DeviceLinear, Prologue, new_buffers
from runtime.layers.device_products import Weights

# (n_out, n_in) of a linear.
Shape = tuple[int, int]
Shapes = Mapping[LinearKind, Shape]
# Random weights of n_out x n_in.
MakeWeights = Callable[[int, int], Weights]
# More than any cache holds, and enough copies to keep a graph's start out of the result.
COLD_BYTES = 300_000_000
FEWEST_COPIES, MOST_COPIES = 4, 48
_OUTLIERS, _OUTLIER_SIZE = 0.002, 6.0


@dataclass(frozen=True, slots=True)
class Source:
    """What a linear is given: an input and what is done to it, and a residual in host memory."""

    x: Tensor
    prologue: Prologue
    residual: ResidualRows


class DeviceBlock:
    """Random weights of a block's shapes; `ratio` gives products more rows than their residuals have outputs.

    So a device whose memory is slower beside its link is stood in for: on an H200, 2.7 for an RTX 4090 and
    6.7 for an RTX 4050 Laptop.
    """

    def __init__(
        self,
        shapes: Shapes,
        makers: Sequence[MakeWeights],
        device: torch.device,
        ratio: float = 1.0,
        copies: int | None = None,
        pinned: bool = True,
    ) -> None:
        """`makers` take turns at the copies, for bases whose blocks differ; `pinned` False keeps residuals on
        the device, where their kernels compile alike.
        """
        self.shapes = dict(shapes)
        rows = {kind: _more_rows(n_out, ratio) for kind, (n_out, _) in shapes.items()}
        made = [{kind: make(rows[kind], shapes[kind][1]) for kind in shapes} for make in makers]
        block_bytes = sum(weights.nbytes for weights in made[0].values())
        self.copies = copies or min(max(FEWEST_COPIES, -(-COLD_BYTES // block_bytes)), MOST_COPIES)
        self.weights = [_turn(made, i) for i in range(self.copies)]
        self.sources = {kind: _source(kind, shape, device, pinned) for kind, shape in shapes.items()}
        self._buffers: dict[LinearKind, DeviceBuffers] = {
            kind: new_buffers(shapes[kind][1], rows[kind], device) for kind in shapes
        }

    def set_table(self, table: Mapping[LinearKind, int]) -> None:
        """k_chunk by kind, for every graph."""
        for kind, k_chunk in table.items():
            self._buffers[kind].set_k_chunk(k_chunk)

    def linears(self, fetching: Mapping[LinearKind, FetchConfig]) -> list[dict[LinearKind, DeviceLinear]]:
        """A linear of every kind for every copy; those that `fetching` does not name are not corrected."""
        return [
            {kind: self._linear(kind, block[kind], fetching.get(kind)) for kind in block}
            for block in self.weights
        ]

    def calls(
        self,
        fetching: Mapping[LinearKind, FetchConfig],
        kinds: tuple[LinearKind, ...] = LINEAR_KINDS,
        adding: bool = False,
    ) -> list[Callable[[], object]]:
        """Input, selection, product and fetch of every linear of every copy, in a token's order.

        `adding`: also the kernel that adds what was fetched, where no later kernel does.
        """
        return [
            partial(
                linear.decode if adding else linear.multiply,
                self.sources[kind].x,
                self.sources[kind].prologue,
            )
            for block in self.linears(fetching)
            for kind, linear in block.items()
            if kind in kinds
        ]

    def step_calls(self, fetching: Mapping[LinearKind, FetchConfig]) -> list[Callable[[], object]]:
        """As `calls`, and what a decode step does with the results: gate, and sums into the residual stream.

        All kinds must be there. Sums of qkv have a kernel of their own, which a step's attention would spare.
        """
        stream = torch.zeros_like(self._buffers["o"].out)
        gated = torch.zeros(1, self.shapes["down"][1], device=stream.device)
        corrected = bool(fetching)
        return [partial(self._step, block, stream, gated, corrected) for block in self.linears(fetching)]

    def buffers(self, kind: LinearKind) -> DeviceBuffers:
        """What the linears of a kind share."""
        return self._buffers[kind]

    def _call(self, kind: LinearKind, linear: DeviceLinear, adding: bool) -> Callable[[], object]:
        source = self.sources[kind]
        return partial(linear.decode if adding else linear.multiply, source.x, source.prologue)

    def _step(
        self, block: Mapping[LinearKind, DeviceLinear], stream: Tensor, gated: Tensor, corrected: bool
    ) -> Tensor:
        block["qkv"].decode(self.sources["qkv"].x, self.sources["qkv"].prologue, corrected)
        block["o"].add_to(stream, self.sources["o"].x, NOTHING, corrected)
        source = self.sources["gate_up"]
        x, prologue = block["gate_up"].gate(source.x, gated, source.prologue, corrected)
        return block["down"].add_to(stream, x, prologue, corrected)

    def _linear(self, kind: LinearKind, weights: Weights, fetching: FetchConfig | None) -> DeviceLinear:
        residual = None if fetching is None else self.sources[kind].residual
        return DeviceLinear(weights, self._buffers[kind], residual=residual, fetching=fetching)


def _turn(made: Sequence[dict[LinearKind, Weights]], copy: int) -> dict[LinearKind, Weights]:
    """Of the blocks made the one whose turn it is, with memory of its own."""
    block = made[copy % len(made)]
    return block if copy < len(made) else {kind: cloned(weights) for kind, weights in block.items()}


def cloned(weights: Weights) -> Weights:
    """The same weights in memory of their own."""
    values = {field.name: getattr(weights, field.name) for field in fields(weights)}
    tensors: dict[str, Any] = {name: v.clone() for name, v in values.items() if isinstance(v, Tensor)}
    return replace(weights, **tensors)


def _more_rows(n_out: int, ratio: float) -> int:
    return round(n_out * ratio / 32) * 32 if ratio != 1.0 else n_out


def _source(kind: LinearKind, shape: Shape, device: torch.device, pinned: bool) -> Source:
    n_out, n_in = shape
    x = torch.randn(n_in, device=device)
    x *= 1 + _OUTLIER_SIZE * (torch.rand(n_in, device=device) < _OUTLIERS)
    other = torch.randn(n_in, device=device)
    prologues = {"qkv": Prologue(norm=other), "gate_up": Prologue(norm=other), "down": Prologue(up=other)}
    return Source(x, prologues.get(kind, NOTHING), random_residual(n_out, n_in, device, pinned))


def random_residual(n_out: int, n_in: int, device: torch.device, pinned: bool) -> ResidualRows:
    """Random residual rows; `pinned`: in page-locked host memory."""
    size = (n_in, -(-n_out // WORD_OUTPUTS))
    words = torch.randint(-(2**31), 2**31 - 1, size, dtype=torch.int32, device=device)
    if pinned and device.type == "cuda":
        words = torch.empty(size, dtype=torch.int32, pin_memory=True).copy_(words)
    return ResidualRows(words, 1e-4 * (1 + torch.rand(n_out, device=device)))
