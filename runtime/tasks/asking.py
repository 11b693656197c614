"""A loaded model that answers for an evaluation: the product's own engine, at one table of channels."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from runtime import device
from runtime.errors import DecdecError, Interrupted
from runtime.generation.answer import AnswerText
from runtime.generation.cache import PrefixCache
from runtime.generation.engine import Engine
from runtime.generation.meter import Meter
from runtime.generation.session import Session
from runtime.generation.settings import GREEDY
from runtime.generation.writer import Writer
from runtime.progress import JobContext
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import MAX_SLOWDOWN_PCT, Generate, Load, Message, Sampling, SetSlowdown
from runtime.protocol.events import Done, Event, FinishReason, KChunk, Loaded
from runtime.text import Tokenizer
from runtime.text.endings import end_ids


class Position(msgspec.Struct, frozen=True):
    """Which weights answer, and how far they are corrected: a table, or a place of the slider."""

    model: str
    base: str = DEFAULT.name
    k_chunk: KChunk | None = None
    slowdown: float | None = None

    def __post_init__(self) -> None:
        if self.k_chunk is not None and self.slowdown is not None:
            raise ValueError("give one of k_chunk and slowdown")
        if self.slowdown is not None and not 0 <= self.slowdown <= MAX_SLOWDOWN_PCT:
            raise ValueError(f"a slowdown is within 0..{MAX_SLOWDOWN_PCT:g} %, not {self.slowdown:g}")
        for kind, k in msgspec.structs.asdict(self.k_chunk or KChunk()).items():
            if not 0 <= k <= 1024:
                raise ValueError(f"k_chunk of {kind} must be within 0..1024, not {k}")

    @classmethod
    def parse(cls, args: dict[str, Any]) -> Position:
        """From a job's arguments; DecdecError with exit code 2 for an impossible position."""
        given = {name: args[name] for name in cls.__struct_fields__ if args.get(name) is not None}
        try:
            return msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise DecdecError("This evaluation is not possible", str(error), code=2) from error


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: its text, how many tokens it took, and why it ended (None: its prompt did not fit)."""

    text: str
    tokens: int
    finish_reason: str | None


class Found(Protocol):
    """What the loader gives."""

    @property
    def engine(self) -> Any:
        """The engine."""
        ...

    @property
    def loaded(self) -> Loaded:
        """What was loaded."""
        ...

    @property
    def folder(self) -> Path:
        """Where its tokenizer is."""
        ...


@dataclass(frozen=True, slots=True)
class _Control:
    ctx: JobContext

    def stopped(self) -> bool:
        """Whether the job was asked to stop."""
        try:
            self.ctx.check()
        except Interrupted:
            return True
        return False

    def slowdown(self) -> SetSlowdown | None:
        """The position never moves."""
        return None


def load(position: Position, ctx: JobContext) -> Found:
    """The prepared model of a position, put there. Raises DecdecError where it has no such base or slider."""
    from runtime.engine.load import load_engine

    device.require_wanted()
    found = load_engine(Load(position.model, position.base), ctx, keep_lossless=False)
    return put(found, position)


def put(found: Found, position: Position) -> Found:
    """Set a loaded engine to a position's table."""
    if position.slowdown is not None:
        if position.slowdown and not found.loaded.path:
            raise DecdecError("The slider cannot move", found.loaded.untuned_reason, "run the tuner first")
        found.engine.set_slowdown(position.slowdown, False)
    elif position.k_chunk is not None:
        found.engine.set_k_chunk(position.k_chunk)
    return found


class Completer:
    """Continues plain texts greedily. What a text shares with the one before is not computed again."""

    def __init__(self, found: Found, ctx: JobContext) -> None:
        self._engine: Engine = found.engine
        self._tokenizer = Tokenizer.from_folder(found.folder)
        self._ends = end_ids(found.folder, self._tokenizer)
        self._cache, self._ctx = PrefixCache(found.engine), ctx

    def complete(self, text: str, stops: Sequence[str], max_tokens: int) -> Answered:
        """The continuation up to one of `stops`; no reason where text and answer exceed the context."""
        ids = (*self._tokenizer.first_ids, *self._tokenizer.encode_plain(text))
        if len(ids) + max_tokens > self._engine.context_limit:
            return Answered("", 0, None)
        answer, meter = AnswerText(self._tokenizer, stops), Meter(self._engine.context_limit)
        reason = _drained(self._writer(answer, meter, max_tokens).write(ids))
        self._ctx.check()
        answer.finish()
        return Answered(answer.text, meter.completion_tokens, reason)

    def _writer(self, answer: AnswerText, meter: Meter, max_tokens: int) -> Writer:
        return Writer(
            cache=self._cache,
            sampling=GREEDY,
            text=answer,
            meter=meter,
            control=_Control(self._ctx),
            ends=self._ends,
            max_tokens=max_tokens,
            move=lambda move: None,
            stats=lambda: meter.stats(self._cache.used, self._engine.slider()),
        )


class Chatter:
    """Answers conversations in the model's own template."""

    def __init__(self, found: Found, ctx: JobContext) -> None:
        self._session, self._ctx = Session(found.engine, found.loaded, found.folder), ctx

    def answer(self, messages: Sequence[Message], sampling: Sampling, max_tokens: int) -> Answered:
        """The answer to the last message."""
        done, command = Done("generate"), Generate(tuple(messages), sampling, max_tokens)
        for event in self._session.answer(command, _Control(self._ctx)):
            done = event if isinstance(event, Done) else done
        self._ctx.check()
        result = done.result
        return Answered(result["text"], result["completion_tokens"], result["finish_reason"])


def _drained(events: Generator[Event, None, FinishReason]) -> FinishReason:
    """What a generator of events returns."""
    while True:
        try:
            next(events)
        except StopIteration as end:
            reason: FinishReason = end.value
            return reason
