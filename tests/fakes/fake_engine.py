"""An engine whose next token is scripted, with a real token history: no weights, no attention."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import torch

from runtime.generation.continuation import HostContinuation
from runtime.generation.engine import Continuation, SliderReading
from runtime.generation.sampler import Sampler
from runtime.generation.settings import SamplingSettings
from runtime.protocol import KChunk, Load, Loaded, SlowdownPoint
from runtime.text import Tokenizer

CHUNK = 16
PATH = (SlowdownPoint(0.0, KChunk()), SlowdownPoint(5.0, KChunk(8, 8, 8, 8)))


@dataclass
class FakeEngine:
    """Each prefill takes the next of `replies` (ids); its tokens come out one by one, then `end` for ever.

    `ahead`: a token is computed as soon as it is chosen. `history`: what is in the cache, also ahead.
    `fail_at`: the step that makes the history so long raises `failure`, once.
    """

    replies: Iterator[Sequence[int]]
    vocab_size: int
    end: int
    context_limit: int = 512
    delay_s: float = 0.0
    history: list[int] = field(default_factory=list)
    prefilled: list[int] = field(default_factory=list)
    moves: list[tuple[int, float, bool]] = field(default_factory=list)
    ahead: bool = False
    speculative: int = 0
    fail_at: int | None = None
    failure: Exception = field(default_factory=MemoryError)

    @property
    def position(self) -> int:
        return len(self.history) - self.speculative

    def truncate(self, n: int) -> None:
        assert 0 <= n <= self.position
        self.speculative = 0
        del self.history[n:]

    def prefill(self, tokens: Sequence[int], check: Callable[[], None]) -> torch.Tensor:
        assert tokens
        assert not self.speculative
        self.prefilled.append(len(tokens))
        for at in range(0, len(tokens), CHUNK):
            check()
            self._append(tokens[at : at + CHUNK])
        self._reply = chain(next(self.replies), repeat(self.end))
        return self._next()

    def continuation(self, logits: torch.Tensor, settings: SamplingSettings) -> Continuation:
        if self.ahead:
            return AheadContinuation(self, logits, settings)
        return HostContinuation(logits, settings, self.decode)

    def decode(self, token: int) -> torch.Tensor:
        time.sleep(self.delay_s)
        self._append([token])
        return self._next()

    def set_slowdown(self, pct: float, lossless: bool) -> None:
        self.moves.append((self.position, pct, lossless))

    def slider(self) -> SliderReading:
        _, pct, lossless = self.moves[-1] if self.moves else (0, 0.0, False)
        k_chunk = PATH[1].k_chunk if pct >= 5 else KChunk()
        return SliderReading(pct, None, k_chunk, k_chunk.total, lossless)

    def _append(self, tokens: Sequence[int]) -> None:
        if self.fail_at is not None and len(self.history) + len(tokens) >= self.fail_at:
            self.fail_at = None
            raise self.failure
        self.history.extend(tokens)
        assert len(self.history) <= self.context_limit

    def _next(self) -> torch.Tensor:
        logits = torch.zeros(self.vocab_size)
        logits[next(self._reply)] = 50.0
        return logits


class AheadContinuation:
    """Computes every token as soon as it is chosen, as an engine does that samples on its device."""

    def __init__(self, engine: FakeEngine, logits: torch.Tensor, settings: SamplingSettings) -> None:
        self._engine, self._sampler = engine, Sampler(settings)
        self._chosen = self._sampler.pick(logits)

    def next(self) -> int:
        engine, token = self._engine, self._chosen
        engine.speculative = 0
        if engine.position < engine.context_limit:
            logits = engine.decode(token)
            engine.speculative = 1
            self._chosen = self._sampler.pick(logits)
        return token

    def close(self) -> None:
        self._engine.truncate(self._engine.position)


@dataclass(frozen=True)
class LoadedFake:
    engine: FakeEngine
    loaded: Loaded
    folder: Path


def load(command: Load, context: Any) -> LoadedFake:
    """What the worker's loader must do, for the tokenizer folder named in FAKE_FOLDER."""
    folder = Path(os.environ["FAKE_FOLDER"])
    tokenizer = Tokenizer.from_folder(folder)
    context.progress("load", 1, 1, "blocks")
    long_reply = tokenizer.encode("the quick brown fox ") * 200
    replies = chain([tokenizer.encode("hello 😀 world")], repeat(long_reply))
    engine = FakeEngine(replies, tokenizer.vocab_size, tokenizer.control["<|im_end|>"], 2000, delay_s=0.005)
    if command.model == "scarce":
        engine.fail_at = 400
    path = () if command.model == "untuned" else PATH
    reason = "" if path else "never tuned"
    return LoadedFake(engine, Loaded(command.model, command.base, "cpu", 2000, 1, path, reason), folder)
