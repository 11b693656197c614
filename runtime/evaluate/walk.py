"""All rows of an evaluation walked through the model together, one block in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import torch

from runtime.evaluate.bases import Maker
from runtime.evaluate.inputs import BlockSource, Calibration
from runtime.evaluate.linear import Recall
from runtime.evaluate.request import BaseWish, Request, Row
from runtime.evaluate.runner import Runner
from runtime.evaluate.score import Reference, Score
from runtime.evaluate.variants import BlockBase
from runtime.model.decoder import Block
from runtime.progress import JobContext

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
    """The states float32 [T, hidden] of every window under a row's weights, and what is found about them.

    row None: the reference.
    """

    row: Row | None
    states: list[torch.Tensor] = field(default_factory=list)
    score: Score = field(default_factory=Score)
    recall: Recall = field(default_factory=Recall)

    @property
    def base(self) -> BaseWish | None:
        """What the row stands on."""
        return self.row.base if self.row else None


class Walk:
    """Scores rows on windows of text. `texts`: calibration, where anything needs it."""

    def __init__(
        self,
        runner: Runner,
        request: Request,
        rows: Sequence[Row],
        makers: Mapping[BaseWish, Maker],
        texts: Sequence[torch.Tensor],
    ) -> None:
        self._runner, self._request, self._makers, self._texts = runner, request, makers, texts
        quantised = [row for row in rows if row.base.method != "bf16"]
        self.streams = {row: Stream(row) for row in [None, *quantised]}
        self._stored_bits = dict.fromkeys(makers, 0.0)
        self._weights = 0

    def run(self, windows: Sequence[torch.Tensor], ctx: JobContext) -> None:
        """Walk batches of windows whose states fit the memory that is free."""
        depth = len(self._runner.model.spec.layers)
        size = len(windows[0]) * self._runner.model.spec.hidden * 4 * len(self.streams)
        at_once = max(1, min(len(windows), self._runner.state_bytes() // size))
        passes = -(-len(windows) // at_once)
        work = len(windows) * len(self.streams) * (depth + 1) + passes * len(self._texts) * depth
        steps = Steps(ctx, sum(map(len, windows)), work)
        for start in range(0, len(windows), at_once):
            self._batch(windows[start : start + at_once], steps)

    def bits_per_weight(self, base: BaseWish) -> float:
        """What a base took, tables and factors included."""
        return self._stored_bits[base] / max(self._weights, 1)

    def _batch(self, windows: Sequence[torch.Tensor], steps: Steps) -> None:
        embedded = [self._runner.embed(window) for window in windows]
        for stream in self.streams.values():
            stream.states = list(embedded)
        calibration = Calibration(self._runner, self._texts)
        self._weights, self._stored_bits = 0, dict.fromkeys(self._makers, 0.0)
        for index in range(len(self._runner.model.spec.layers)):
            self._block(index, calibration, steps)
        for number, window in enumerate(windows):
            self._score(number, window)
            for _ in self.streams:
                steps.tick()

    def _block(self, index: int, calibration: Calibration, steps: Steps) -> None:
        block, parts = self._runner.block(index), self._runner.model.parts(index)
        source = BlockSource(index, parts, None, self._runner.device)
        block.linears = source.reference()
        if self._texts:
            inputs = calibration.step(block, steps.tick)
            source = BlockSource(index, parts, inputs, self._runner.device)
        self._weights += sum(linear.n_in * linear.n_out for linear in block.linears.values())
        for base, streams in groupby(self.streams.values(), key=lambda stream: stream.base):
            made = self._base(source, base)
            for stream in streams:
                if made is not None and stream.row is not None:
                    block.linears = made.linears(stream.row, stream.recall)
                self._step(block, stream, steps)

    def _base(self, source: BlockSource, base: BaseWish | None) -> BlockBase | None:
        if base is None:
            return None
        made = BlockBase(source, self._makers[base], self._request)
        self._stored_bits[base] += sum(one.stored_bits for one in made.made.values())
        return made

    def _step(self, block: Block, stream: Stream, steps: Steps) -> None:
        for number, h in enumerate(stream.states):
            stream.states[number] = self._runner.step(block, h)
            steps.tick()

    def _score(self, number: int, window: torch.Tensor) -> None:
        rows = max(1, LOGITS_AT_ONCE // self._runner.model.spec.vocab_size)
        window = window.to(self._runner.device)
        for start in range(self._request.prompt, len(window) - 1, rows):
            stop = min(start + rows, len(window) - 1)
            targets = window[start + 1 : stop + 1]
            reference = Reference.of(self._runner.logits(self.streams[None].states[number][start:stop]))
            for stream in self.streams.values():
                logits = self._runner.logits(stream.states[number][start:stop])
                stream.score.add(logits, reference, targets)
