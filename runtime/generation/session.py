"""A loaded model in conversation: every question becomes a stream of Token, Stats and one Done event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime.errors import DecdecError
from runtime.generation import settings
from runtime.generation.answer import AnswerText
from runtime.generation.cache import PrefixCache
from runtime.generation.context import ContextWindow, Fitted, exhausted
from runtime.generation.engine import Engine
from runtime.generation.meter import Meter
from runtime.generation.writer import Control, Writer
from runtime.protocol.answers import answer_result
from runtime.protocol.commands import Generate, SetSlowdown
from runtime.protocol.events import Done, Event, Failed, Loaded, Stats
from runtime.shortage import is_out_of_memory
from runtime.text import PromptBuilder, Tokenizer
from runtime.text.endings import end_ids

# Nobody reads more of one answer, and a small model that lost its thread would fill the whole context.
MAX_ANSWER_TOKENS = 2048


class Session:
    """One loaded model and its conversation's cache."""

    def __init__(self, engine: Engine, loaded: Loaded, folder: Path) -> None:
        """`folder` holds tokenizer, template and configuration; raises DecdecError if they are unusable."""
        self._engine, self._loaded = engine, loaded
        self._tokenizer = Tokenizer.from_folder(folder)
        self._builder = PromptBuilder.from_folder(folder, self._tokenizer)
        self._window = ContextWindow(self._builder, engine.context_limit)
        self._ends = end_ids(folder, self._tokenizer)
        self._defaults = settings.model_defaults(folder)
        self._cache = PrefixCache(engine)
        self._meter = Meter(engine.context_limit)

    def answer(self, command: Generate, control: Control) -> Iterator[Event]:
        """Write one answer. Raises DecdecError for a conversation that cannot be answered, or without memory.

        After a failure the next question starts from an empty cache; a stop keeps what was computed.
        """
        fitted = self._window.fit(command.messages, command.max_tokens)
        self._require_known(fitted.prompt.ids)
        try:
            yield from self._answer(command, fitted, control)
        except Exception as error:
            self._cache.clear()
            if is_out_of_memory(error):
                raise exhausted(error, self._engine.context_limit) from error
            raise

    def _require_known(self, ids: Sequence[int]) -> None:
        """A tokenizer may name more tokens than the embedding has rows, and kernels do not look."""
        if max(ids, default=0) >= self._engine.vocab_size:
            why = f"its tokenizer gives token {max(ids)} of {self._engine.vocab_size}"
            raise DecdecError("The model cannot read this conversation", why, "choose another model")

    def set_slowdown(self, move: SetSlowdown) -> Failed | None:
        """Move the slider; a failure event where this model has no such position."""
        if move.lossless and not self._loaded.lossless:
            return Failed("set_slowdown", "Lossless is not available", "INT8-X does not fit in memory here")
        if move.pct > 0 and not self._loaded.path:
            why = self._loaded.untuned_reason or "this model was not tuned"
            return Failed("set_slowdown", "The slider cannot move", why, "run the tuner first")
        self._engine.set_slowdown(move.pct, move.lossless)
        return None

    def stats(self, *, final: bool = True) -> Stats:
        """The last answer's figures with the slider as it stands now."""
        return self._meter.stats(self._cache.used, self._engine.slider(), final=final)

    def _answer(self, command: Generate, fitted: Fitted, control: Control) -> Iterator[Event]:
        prompt = fitted.prompt
        self._meter = Meter(self._engine.context_limit)
        stops = (*self._builder.stops, *command.stop)
        text = AnswerText(self._tokenizer, stops, prompt.opening, continues=prompt.continues)
        reason = yield from self._writer(command, text, control).write(prompt.ids)
        if rest := text.finish():
            yield rest
        if not text.stopped:
            self._builder.remember(prompt, text.own_text, text.ids)
        stats = self.stats()
        yield stats
        yield Done("generate", answer_result(text.text, self._loaded, reason, stats, fitted.dropped))

    def _writer(self, command: Generate, text: AnswerText, control: Control) -> Writer:
        return Writer(
            cache=self._cache,
            sampling=settings.resolve(command.sampling, self._defaults),
            text=text,
            meter=self._meter,
            control=control,
            ends=self._ends,
            max_tokens=MAX_ANSWER_TOKENS if command.max_tokens is None else command.max_tokens,
            move=self.set_slowdown,
            stats=lambda: self.stats(final=False),
        )
