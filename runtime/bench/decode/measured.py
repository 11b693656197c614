"""An engine on a GPU with what only measurements ask of it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from runtime.bench.one_token import kernels_started
from runtime.engine.gpu.engine import GpuEngine
from runtime.engine.gpu.slider import kinds_of
from runtime.engine.gpu.step import Corrected
from runtime.engine.gpu.timing import Stopwatch
from runtime.generation.engine import Continuation, SliderReading
from runtime.generation.settings import SamplingSettings
from runtime.protocol.events import KChunk

_TOKEN = 1


class MeasuredEngine:
    """Implements `stepping.StepEngine`."""

    def __init__(self, engine: GpuEngine) -> None:
        self.engine, self.context_limit, self.vocab_size = engine, engine.context_limit, engine.vocab_size
        self._watch = Stopwatch(engine.model.device)

    @property
    def position(self) -> int:
        """Tokens in the KV cache."""
        return self.engine.position

    def truncate(self, n: int) -> None:
        """Keep the first n tokens of the KV cache."""
        self.engine.truncate(n)

    def prefill(self, tokens: Sequence[int], check: Callable[[], None]) -> Tensor:
        """Append tokens; logits of the last."""
        return self.engine.prefill(tokens, check)

    def continuation(self, logits: Tensor, settings: SamplingSettings) -> Continuation:
        """The answer to what the cache holds."""
        return self.engine.continuation(logits, settings)

    def set_slowdown(self, pct: float, lossless: bool) -> None:
        """Ask for a slider position."""
        self.engine.set_slowdown(pct, lossless)

    def slider(self) -> SliderReading:
        """The slider's present state."""
        return self.engine.slider()

    def set_k_chunk(self, table: KChunk) -> None:
        """Put a table in force directly."""
        self.engine.set_k_chunk(table)

    @torch.inference_mode()
    def step_milliseconds(self, position: int, replays: int) -> float:
        """Median of a whole step at this place, by the device's clock; steps follow one another at once."""
        state, replay = self.engine.buffers.state, self.engine.graphs.replay(self._corrected)
        with state.kept():
            state.place(position, _TOKEN)
            begin, marks = state.words.clone(), []
            for _ in range(replays):
                state.words.copy_(begin)
                start = self._watch.mark()
                replay()
                marks.append((start, self._watch.mark()))
            self._watch.wait(marks[-1][1])
        return 1e3 * statistics.median(self._watch.seconds(*pair) for pair in marks)

    @torch.inference_mode()
    def kernels_per_token(self) -> int:
        """Kernels that a step starts, by torch's profiler, which may slow what runs later; 0 on a CPU."""
        with self.engine.buffers.state.kept():
            return kernels_started(lambda: self.engine.graphs.step.run(self._corrected))

    def memory(self) -> Mapping[str, int]:
        """Bytes of device memory: blocks, head, cache."""
        model, cache = self.engine.model, self.engine.cache
        head = model.head.bytes_on_device()
        return {"blocks": model.bytes_on_device() - head, "head": head, "cache": cache.nbytes}

    @property
    def _corrected(self) -> Corrected:
        return kinds_of(self.engine.slider().k_chunk)
