"""The engine on a GPU: one sequence, one static KV cache, captured steps, tokens chosen on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kernels.gpu.attention.cache import BF16_BITS, new_device_cache
from runtime.engine.gpu.continuation import DeviceContinuation, Stepping
from runtime.engine.gpu.graphs import Replay, StepGraphs
from runtime.engine.gpu.linears import Fetching
from runtime.engine.gpu.measures import kernels_of, step_milliseconds
from runtime.engine.gpu.model import BlockParts, DeviceModel, Linears
from runtime.engine.gpu.prefill import CHUNK, Prefill
from runtime.engine.gpu.slider import DeviceSlider, kinds_of
from runtime.engine.gpu.step import DecodeStep, new_step_buffers
from runtime.engine.gpu.timing import PairedSteps, Stopwatch
from runtime.engine.slider import TunedPath
from runtime.generation.engine import SliderReading
from runtime.generation.settings import SamplingSettings
from runtime.protocol.events import KChunk


@dataclass(frozen=True, slots=True)
class Bank:
    """One representation of all linears: for prefill, and as captured steps."""

    blocks: tuple[BlockParts, ...]
    graphs: StepGraphs


class GpuEngine:
    """Implements `runtime.generation.engine.Engine`."""

    def __init__(
        self,
        model: DeviceModel,
        *,
        path: TunedPath,
        fetching: Fetching | None = None,
        lossless: Sequence[Linears] | None = None,
        kv_bits: int = BF16_BITS,
        prompt_correction: bool = True,
        chunk: int = CHUNK,
    ) -> None:
        """`fetching`: how rows are fetched by kind, by default as suits their shapes. `lossless`: linears of
        every block for the stop beyond the slider's right end. `chunk`: tokens of a prompt at once.
        """
        spec = model.spec
        self.context_limit, self.vocab_size = model.context, spec.vocab_size
        self.model, self._position = model, 0
        self.cache = new_device_cache(
            len(spec.layers), spec.n_kv_heads, model.context, spec.head_dim, model.device, kv_bits
        )
        self.buffers = new_step_buffers(model)
        step = DecodeStep(model, self.cache, self.buffers, fetching or {})
        self._base = Bank(model.blocks, StepGraphs(step))
        self._lossless = self._second_bank(lossless) if lossless is not None else None
        self._prefill = Prefill(model, self.cache, corrected=prompt_correction, chunk=chunk)
        self._slider = DeviceSlider(path, self.buffers, step.blocks, lossless is not None)
        self._watch = Stopwatch(model.device)
        self._pairs = PairedSteps(self._watch)
        self._open: DeviceContinuation | None = None

    def _second_bank(self, linears: Sequence[Linears]) -> Bank:
        step = DecodeStep(self.model, self.cache, self.buffers, {}, linears)
        pairs = zip(self.model.blocks, linears, strict=True)
        return Bank(tuple(replace(block, linears=own) for block, own in pairs), StepGraphs(step))

    @property
    def position(self) -> int:
        """Tokens in the KV cache, without those computed ahead."""
        return self._position if self._open is None else self._position + self._open.accepted

    def truncate(self, n: int) -> None:
        """Keep the first n tokens of the KV cache."""
        if not 0 <= n <= self.position:
            raise ValueError(f"cannot truncate {self.position} positions to {n}")
        self._position = n

    def warm(self) -> None:
        """Compile and capture every step that a move of the slider can ask for: later that would stall."""
        self._replay()
        for table in self._slider.tables():
            self._base.graphs.replay(kinds_of(table))
        if self._lossless is not None:
            self._lossless.graphs.replay(())

    @torch.inference_mode()
    def prefill(self, tokens: Sequence[int], check: Callable[[], None]) -> Tensor:
        """Append tokens in chunks; logits of the last, float32 [vocab]."""
        self._take_wanted()
        if self._position + len(tokens) > self.context_limit:
            raise ValueError(f"{len(tokens)} tokens do not fit behind {self._position}")
        start = self._position
        try:
            stream = self._prefill.run(tokens, start, check, self._bank.blocks)
        finally:
            self._position = start + self._prefill.done
        return self._logits(self._bank.graphs.step.finish(stream))

    @torch.inference_mode()
    def decode(self, token: int) -> Tensor:
        """Append one token; logits after it, float32 [vocab]. A slider change takes effect here."""
        self._take_wanted()
        self.buffers.state.place(self._position, token)
        self._replay()()
        self._position += 1
        return self._logits(self.buffers.head.out)

    @torch.inference_mode()
    def continuation(self, logits: Tensor, settings: SamplingSettings) -> DeviceContinuation:
        """The answer to what the cache holds, chosen on the device."""
        state, start = self.buffers.state, self._position
        self.buffers.head.out.copy_(logits.reshape(1, -1))
        self.buffers.sampler.set(settings, first=start)
        state.place(start - 1, 0)
        self._bank.graphs.step.choose()
        stepping = Stepping(self._launch, state.answers, start, self.context_limit, self._watch, self._closed)
        self._open = DeviceContinuation(stepping)
        return self._open

    def set_slowdown(self, pct: float, lossless: bool) -> None:
        """Ask for a slider position; the next step that is launched takes it."""
        self._slider.want(pct, lossless)

    def slider(self) -> SliderReading:
        """The state in force, or about to be."""
        self._take_wanted()
        return self._slider.reading(self._pairs.pct)

    def set_k_chunk(self, table: KChunk) -> None:
        """Put a table in force directly (benchmarks)."""
        self._slider.put(table)
        self._pairs.reset()

    def step_milliseconds(self, position: int, replays: int) -> float:
        """Median device time of a step at this place in the context, as the slider stands."""
        self._take_wanted()
        return step_milliseconds(self._replay(), self.buffers, position, replays)

    def kernels_per_token(self) -> int:
        """Kernels that a step starts, as the slider stands."""
        run = self._bank.graphs.step.run
        return kernels_of(lambda: run(self._slider.corrected), self.buffers)

    def memory(self) -> dict[str, int]:
        """Bytes of device memory by what they are for."""
        lossless = () if self._lossless is None else self._lossless.blocks
        linears = (linear for block in lossless for linear in block.linears.values())
        return {
            "model": self.model.bytes_on_device(),
            "lossless": sum(linear.bytes_on_device() for linear in linears),
            "KV cache": self.cache.nbytes,
        }

    @property
    def _bank(self) -> Bank:
        if self._slider.at.lossless and self._lossless is not None:
            return self._lossless
        return self._base

    def _replay(self) -> Replay:
        return self._bank.graphs.replay(self._slider.corrected)

    def _take_wanted(self) -> None:
        if self._slider.take():
            self._pairs.reset()

    @torch.inference_mode()
    def _launch(self) -> None:
        """The step of the token that the state names; now and then a pair of steps is timed."""
        self._take_wanted()
        corrected = self._slider.corrected
        if corrected and self._pairs.due():
            self._timed_pair(self._replay())
        else:
            self._replay()()

    def _timed_pair(self, corrected: Replay) -> None:
        """The step without corrections leaves no trace: the real one follows and writes the same places."""
        words, base = self.buffers.state.words, self._base.graphs.replay(())
        before = words.clone()
        self._pairs.run(base, lambda: words.copy_(before), corrected)

    def _closed(self, position: int) -> None:
        self._position, self._open = position, None

    def _logits(self, logits: Tensor) -> Tensor:
        """A copy that is there."""
        copy = logits[0].clone()
        self._watch.wait(self._watch.mark())
        return copy
