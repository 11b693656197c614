"""A checkpoint read block by block over calibration texts: each block's weights and what its linears see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.dense import Dense
from runtime.model.cache import SinglePass
from runtime.model.source import SourceModel
from runtime.progress import JobContext
from runtime.quantise.inputs import InputMoments
from runtime.sensitivity.fisher import compute_type


@dataclass(frozen=True, slots=True)
class BlockInputs:
    """A decoder block's fused weights float32 [n_out, n_in], and the inputs of each of its linears."""

    index: int
    weights: dict[LinearKind, torch.Tensor]
    inputs: dict[LinearKind, InputMoments]


class Listener(Dense):
    """A dense linear that keeps the inputs it multiplied, rounded to bfloat16: they are many.

    It multiplies in bfloat16 itself where the processor does, for the same inputs to within that rounding.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__(weight.to(compute_type()))
        self.seen: list[torch.Tensor] = []

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        self.seen.append(x.bfloat16())
        return super().prefill(x)

    def moments(self) -> InputMoments:
        """What was seen."""
        return InputMoments(torch.cat(self.seen) if self.seen else torch.empty(0, self.n_in))


def walk(
    model: SourceModel, texts: Sequence[torch.Tensor], ctx: JobContext, start: int = 0
) -> Iterator[BlockInputs]:
    """Every block from `start` on, with its inputs under the model's own weights, texts int64 [T] each.

    Blocks before `start` are only run. In memory: one block, and the states and inputs of all tokens.
    Progress "quantise" in blocks.
    """
    states, count = [model.embed(text) for text in texts], len(model.spec.layers)
    for index in range(count):
        ctx.progress("quantise", index, count, "blocks")
        weights = {kind: torch.cat(parts) for kind, parts in model.parts(index).items()}
        block, listeners = model.bare_block(index), {kind: Listener(weights[kind]) for kind in LINEAR_KINDS}
        block.linears.update(listeners)
        states = [model.decoder.run_block(h, 0, block, SinglePass()) for h in states]
        if index >= start:
            yield BlockInputs(index, weights, {kind: one.moments() for kind, one in listeners.items()})
    ctx.progress("quantise", count, count, "blocks")
