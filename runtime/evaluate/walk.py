"""All rows of an evaluation walked through the model together, one block in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from runtime.calibration import record
from runtime.calibration.collect import BlockStatistics
from runtime.evaluate.coder import Coder
from runtime.evaluate.request import Request, Row
from runtime.evaluate.score import Score
from runtime.evaluate.variants import BlockVariants
from runtime.layers.base import Linear, LinearKind
from runtime.model.cache import KVCache
from runtime.model.decoder import Block, rms_norm
from runtime.model.source import SourceModel
from runtime.progress import JobContext

STATE_BYTES = 256 << 20
LOGITS_AT_ONCE = 1 << 24


@dataclass(slots=True)
class Steps:
    """Progress in tokens: `total` tokens are done when `steps` equal pieces of work are."""

    ctx: JobContext
    total: int
    steps: int
    done: int = 0

    def tick(self) -> None:
        """One more piece is done."""
        self.done += 1
        self.ctx.progress("evaluate", self.total * self.done // self.steps, self.total, "tokens")


@dataclass(slots=True)
class Stream:
    """The states float32 [T, hidden] of every window under one set of weights; row None: the reference."""

    row: Row | None
    states: list[torch.Tensor] = field(default_factory=list)


def calibrate(model: SourceModel, batches: Sequence[torch.Tensor], ctx: JobContext) -> list[BlockStatistics]:
    """Statistics of every block's inputs under the source's weights; progress in blocks."""
    states = [model.embed(batch) for batch in batches]
    found: list[BlockStatistics] = []
    count = len(model.spec.layers)
    for index in range(count):
        ctx.progress("calibrate", index, count, "blocks")
        block = model.bare_block(index)
        linears = BlockVariants(Request("", ""), index, model.parts(index), None).reference()
        block.linears.update(linears)
        with record(block.linears) as statistics:
            states = [_step(model, block, h) for h in states]
        found.append(statistics)
    ctx.progress("calibrate", count, count, "blocks")
    return found


class Walk:
    """Scores every row of a request on windows of text."""

    def __init__(
        self,
        model: SourceModel,
        request: Request,
        statistics: list[BlockStatistics] | None,
        coder: Coder | None = None,
    ) -> None:
        self._model, self._request, self._statistics, self._coder = model, request, statistics, coder
        self._rows = [row for row in request.rows() if row.base != "bf16"]
        self.scores: dict[Row | None, Score] = {row: Score() for row in [None, *self._rows]}

    def run(self, windows: Sequence[torch.Tensor], ctx: JobContext) -> None:
        """Walk batches of windows small enough for STATE_BYTES of states."""
        depth = len(self._model.spec.layers) + 1
        steps = Steps(ctx, sum(map(len, windows)), len(windows) * len(self.scores) * depth)
        size = len(windows[0]) * self._model.spec.hidden * 4 * len(self.scores)
        at_once = max(1, STATE_BYTES // size)
        for start in range(0, len(windows), at_once):
            self._batch(windows[start : start + at_once], steps)

    def _batch(self, windows: Sequence[torch.Tensor], steps: Steps) -> None:
        embedded = [self._model.embed(window) for window in windows]
        streams = [Stream(row, list(embedded)) for row in self.scores]
        for index in range(len(self._model.spec.layers)):
            self._block(index, streams, steps)
        for number, window in enumerate(windows):
            self._score(window, [stream.states[number] for stream in streams])
            for _ in streams:
                steps.tick()

    def _block(self, index: int, streams: list[Stream], steps: Steps) -> None:
        statistics = self._statistics[index] if self._statistics else None
        variants = BlockVariants(self._request, index, self._model.parts(index), statistics, self._coder)
        block = self._model.bare_block(index)
        for stream in streams:
            block.linears = _linears(variants, stream.row)
            for number, h in enumerate(stream.states):
                stream.states[number] = _step(self._model, block, h)
                steps.tick()

    def _score(self, window: torch.Tensor, states: list[torch.Tensor]) -> None:
        rows = max(1, LOGITS_AT_ONCE // self._model.spec.vocab_size)
        for start in range(0, len(window) - 1, rows):
            stop = min(start + rows, len(window) - 1)
            targets = window[start + 1 : stop + 1]
            reference = self._logits(states[0][start:stop])
            for score, h in zip(self.scores.values(), states, strict=True):
                score.add(self._logits(h[start:stop]), reference, targets)

    def _logits(self, h: torch.Tensor) -> torch.Tensor:
        decoder = self._model.decoder
        return decoder.logits(rms_norm(h, decoder.norm, self._model.spec.norm_eps))


def _linears(variants: BlockVariants, row: Row | None) -> dict[LinearKind, Linear]:
    return variants.reference() if row is None else variants.row(row)


def _step(model: SourceModel, block: Block, h: torch.Tensor) -> torch.Tensor:
    return model.decoder.run_block(h, 0, block, KVCache(model.spec, len(h)))
