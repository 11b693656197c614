"""The engine on the CPU: one sequence, one KV cache, layers that can be exchanged between two tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from runtime.engine.cpu_linear import CpuLinear, ProductLayer
from runtime.engine.cpu_step import CpuStep
from runtime.engine.slider import MeasuredSlowdown, TunedPath
from runtime.engine.step_timer import StepTimer
from runtime.generation.continuation import HostContinuation
from runtime.generation.engine import SliderReading
from runtime.generation.settings import SamplingSettings
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.correction import CorrectionStack
from runtime.layers.int8 import Int8
from runtime.model.cache import KVCache
from runtime.model.decoder import Decoder
from runtime.protocol.events import KChunk

PREFILL_CHUNK = 256
# Reading the clock around every correction costs a little; every eighth step is enough to measure.
TIMED_EVERY = 8


@dataclass(frozen=True, slots=True)
class Bank:
    """One representation of all linears: a layer of every kind per block, and the same bound for decoding."""

    layers: list[dict[LinearKind, Linear]]
    bound: list[dict[LinearKind, CpuLinear]]


class CpuEngine:
    """Implements `runtime.generation.engine.Engine`."""

    def __init__(self, decoder: Decoder, embedding: Int8, head: Int8, context: int, path: TunedPath) -> None:
        """`decoder` holds the low-bit (or only) layers. `add_lossless` adds the stop beyond the slider."""
        self.context_limit, self.vocab_size = context, decoder.spec.vocab_size
        self._decoder, self._path = decoder, path
        self._cache = KVCache(decoder.spec, context)
        self._step = CpuStep(decoder, embedding, head, self._cache)
        self._base = Bank(
            [block.linears for block in decoder.blocks],
            [self._step.linears(i) for i in range(len(decoder.blocks))],
        )
        self._lossless: Bank | None = None
        self._wanted: tuple[float, bool] | None = None
        self._target, self._is_lossless, self._k_chunk = 0.0, False, KChunk()
        self._measured, self._steps = MeasuredSlowdown(), 0

    def add_lossless(self, layers: list[dict[LinearKind, Int8]]) -> None:
        """Make the INT8 layers available as the slider's last stop."""
        bound = [self._step.bind_linears(i, dict[LinearKind, ProductLayer](b)) for i, b in enumerate(layers)]
        self._lossless = Bank([dict[LinearKind, Linear](block) for block in layers], bound)

    @property
    def position(self) -> int:
        """Tokens in the KV cache."""
        return self._cache.length

    def truncate(self, n: int) -> None:
        """Keep the first n tokens of the KV cache."""
        self._cache.truncate(n)

    @torch.inference_mode()
    def prefill(self, tokens: Sequence[int], check: Callable[[], None]) -> torch.Tensor:
        """Append tokens in chunks; logits of the last, float32 [vocab]."""
        self._take_wanted()
        for start in range(0, len(tokens), PREFILL_CHUNK):
            check()
            part = torch.tensor(tokens[start : start + PREFILL_CHUNK])
            hidden = self._decoder.hidden(part, self._cache)
        return self._decoder.logits(hidden[-1:])[0]

    def continuation(self, logits: torch.Tensor, settings: SamplingSettings) -> HostContinuation:
        """The answer to what the cache holds; `logits` are those that the last prefill gave."""
        return HostContinuation(logits, settings, self.decode)

    @torch.inference_mode()
    def decode(self, token: int) -> torch.Tensor:
        """Append one token; logits after it, float32 [vocab]. A slider change takes effect here."""
        self._take_wanted()
        timed = self._steps % TIMED_EVERY == 0
        self._steps += 1
        return self._timed_step(token) if timed else self._step.decode(token)

    @torch.inference_mode()
    def time_step(self, token: int, clock: Callable[[], float] = time.perf_counter) -> StepTimer:
        """One step at the present table with every product and correction timed by `clock` (seconds)."""
        return self._run_timed(token, StepTimer(clock))[1]

    def _timed_step(self, token: int) -> torch.Tensor:
        logits, timer = self._run_timed(token, StepTimer())
        self._measured.add(timer.step_s, timer.correction_s)
        return logits

    def _run_timed(self, token: int, timer: StepTimer) -> tuple[torch.Tensor, StepTimer]:
        self._step.timer = timer
        started = time.perf_counter()
        try:
            logits = self._step.decode(token)
        finally:
            self._step.timer = None
        timer.step_s = time.perf_counter() - started
        return logits, timer

    def set_slowdown(self, pct: float, lossless: bool) -> None:
        """Ask for a slider position; the next step takes it."""
        self._wanted = (pct, lossless and self._lossless is not None)

    def slider(self) -> SliderReading:
        """The state in force, or about to be."""
        self._take_wanted()
        return SliderReading(
            target_pct=self._target,
            measured_pct=self._measured_pct(),
            k_chunk=KChunk() if self._is_lossless else self._k_chunk,
            channels_corrected=0 if self._is_lossless else self._channels(),
            lossless=self._is_lossless,
            left_out=sum(stack.not_finite for stack in self._stacks()),
        )

    def set_k_chunk(self, table: KChunk) -> None:
        """Put a table in force directly (tuning and benchmarks): in every layer, or, if it fails, in none."""
        ready = [
            (stack, stack.table(getattr(table, kind)))
            for kind in LINEAR_KINDS
            for stack in self._stacks(kind)
        ]
        for stack, made in ready:
            stack.use(made)
        self._k_chunk = table
        self._measured.reset()

    def _take_wanted(self) -> None:
        if self._wanted is None:
            return
        (pct, lossless), self._wanted = self._wanted, None
        table = self._path.at(pct)
        if table != self._k_chunk:
            self.set_k_chunk(table)
        self._target = pct
        if lossless != self._is_lossless:
            self._use(self._lossless if lossless else self._base)
            self._is_lossless = lossless
            self._measured.reset()

    def _use(self, bank: Bank | None) -> None:
        assert bank is not None
        for index, block in enumerate(self._decoder.blocks):
            block.linears = bank.layers[index]
            self._step.use_linears(index, bank.bound[index])

    def _measured_pct(self) -> float | None:
        """What corrections cost; the call that finds nothing to correct is part of every step."""
        nothing = self._is_lossless or self._k_chunk == KChunk()
        return 0.0 if nothing and self._measured.pct is not None else self._measured.pct

    def _stacks(self, *kinds: LinearKind) -> set[CorrectionStack]:
        """The residuals of these kinds, or of all."""
        corrections = (block[kind].correction for block in self._base.bound for kind in kinds or LINEAR_KINDS)
        return {c.stack for c in corrections if c is not None}

    def _channels(self) -> int:
        """Input channels corrected per token, over all layers."""
        corrections = (linear.correction for block in self._base.bound for linear in block.values())
        return sum(c.stack.channels for c in corrections if c is not None)
