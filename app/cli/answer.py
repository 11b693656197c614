"""One question, one answer: prepares, tunes and loads what is missing, then streams the text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from app.cli import work
from app.loading import Loading
from app.models import Target
from app.slider import DEFAULT_SLOWDOWN_PCT
from app.text import Neutraliser, neutralise
from runtime import device
from runtime.errors import DecdecError
from runtime.protocol.bases import DEFAULT
from runtime.protocol.commands import (
    LOSSLESS,
    Command,
    Generate,
    Message,
    Prepare,
    Sampling,
    SetSlowdown,
    Tune,
)
from runtime.protocol.events import Done, Event, Loaded, Token

if TYPE_CHECKING:
    from app.cli.remote import Remote


@dataclass(slots=True)
class Answer:
    """The sequence of commands for one prompt; decides each by the events of those before.

    `slowdown_pct`: None is `usual_pct`, or 0 where the model is not tuned. `tune`: tune a
    model that is not tuned yet. `loading`: how it is brought into memory. `out`: where text goes while it
    comes, None for nowhere; a terminal gets it neutralised. `remote`: the server that answers instead, with
    nothing to prepare or to tune.
    """

    target: Target
    prompt: str
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    slowdown_pct: float | None = None
    tune: bool = False
    base: str = DEFAULT.name
    loading: Loading = field(default_factory=Loading)
    out: TextIO | None = None
    remote: Remote | None = None
    usual_pct: float = DEFAULT_SLOWDOWN_PCT
    _loaded: Loaded | None = field(default=None, init=False)
    _ends_line: bool = field(default=True, init=False)
    _safe: Neutraliser = field(default_factory=Neutraliser, init=False)

    def run(self) -> dict[str, Any]:
        """The generation's result, as `run --json` prints it."""
        try:
            server = self.remote.server if self.remote else None
            return work.run(self._commands(), self._on_event, server)
        finally:
            if self.out and not self._ends_line:
                self.out.write(self._safe.finish() + "\n")
                self.out.flush()

    def _commands(self) -> Iterator[Command]:
        if self.remote:
            yield self.loading.command(self.remote.model)
        else:
            yield from self._local_commands()
        yield Generate((Message("user", self.prompt),), self.sampling, self.max_tokens)

    def _local_commands(self) -> Iterator[Command]:
        """Whatever brings the model into memory, with the slider where it should stand."""
        device.require_wanted()
        name = self.target.name
        if not self.target.has(self.base):
            print(self.target.lack(self.base), file=sys.stderr)
            yield Prepare(self.target.source, name, bases=self._bases())
        yield self.loading.command(name, self.base)
        if self.tune and self.base != LOSSLESS and not self._is_tuned():
            reason = (self._loaded and self._loaded.untuned_reason) or "not tuned on this device yet"
            print(f"Tuning {name}: {neutralise(reason).rstrip('.')}.", file=sys.stderr)
            yield Tune(name, self.base)
            yield self.loading.command(name, self.base)
        if slowdown := self._slowdown():
            yield SetSlowdown(slowdown)

    def _bases(self) -> tuple[str, ...]:
        return (DEFAULT.name,) if self.base == LOSSLESS else (self.base,)

    def _is_tuned(self) -> bool:
        return bool(self._loaded and self._loaded.path)

    def _slowdown(self) -> float:
        if self.slowdown_pct is None:
            return self.usual_pct if self._is_tuned() else 0.0
        if self.slowdown_pct > 0 and not self._is_tuned():
            reason = (self._loaded and self._loaded.untuned_reason) or "no profile fits"
            raise DecdecError(
                f"A slowdown of {self.slowdown_pct:g} % cannot be set", reason, "run decdec-chat tune"
            )
        return self.slowdown_pct

    def _note(self, event: Loaded) -> None:
        """Tell what a person would not expect, once: tuning loads the model again."""
        if event.note and (self._loaded is None or self._loaded.note != event.note):
            print(neutralise(event.note), file=sys.stderr)

    def _on_event(self, event: Event) -> None:
        match event:
            case Loaded():
                self._note(event)
                self._loaded = event
            case Token() if self.out and event.text:
                self.out.write(self._safe.push(event.text) if self.out.isatty() else event.text)
                self.out.flush()
                self._ends_line = event.text.endswith("\n")
            case Done(job="prepare"):
                # The preparation knows the name under which it published the model.
                name = event.result.get("name", self.target.name)
                self.target = Target(name, self.target.source, True, frozenset(self._bases()))
