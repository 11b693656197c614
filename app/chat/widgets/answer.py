"""One answer: blocks while it streams, a single cheap block when it is complete."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.theme import Theme
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from app import format
from app.chat.markdown import STYLES, Answer, theme_from
from app.conversation import Turn, TurnState
from app.stream import BlockStream, Pace


class AnswerView(Vertical):
    """Draws a turn's answer. `stream` may be called at any rate; `finish` once."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*STYLES, "answer--code-block"}

    def __init__(self, turn: Turn) -> None:
        super().__init__(classes="answer")
        self.turn = turn
        self._pace, self._blocks = Pace(), BlockStream()
        self._shown = 0
        self._tail = Static(classes="answer-block")
        self._ending = Static(classes="answer-ending", markup=False)

    def compose(self) -> ComposeResult:
        """An empty block, and the line that tells how it ended."""
        yield self._tail
        yield self._ending

    def on_mount(self) -> None:
        """Show what is there: all of it for an answer that is over."""
        if self.turn.open:
            self._ending.update("…")
        else:
            self.finish()

    @property
    def stale(self) -> bool:
        """Whether text came that is not on screen and may be drawn now."""
        return len(self.turn.answer) != self._shown and self._pace.due(time.monotonic())

    def stream(self) -> None:
        """Draw the text so far: settled blocks once, the last block again."""
        started = time.monotonic()
        text = self.turn.answer
        for block in self._blocks.push(text):
            self.mount(Static(self._markdown(block), classes="answer-block"), before=self._tail)
        self._tail.update(self._markdown(self._blocks.tail))
        self._shown = len(text)
        self.call_after_refresh(lambda: self._pace.drew(started, time.monotonic()))

    def finish(self) -> None:
        """Replace the blocks by the whole source in one, so that what is seen is what is stored."""
        turn = self.turn
        with self.app.batch_update():
            for block in self.query(".answer-block"):
                if block is not self._tail:
                    block.remove()
            self._tail.update(self._markdown(turn.answer))
            self._tail.display = bool(turn.answer)
            self._ending.update(_facts(turn))
            self._ending.set_class(bool(turn.ending), "-cut")
            self._ending.set_class(turn.state is TurnState.FAILED, "-failed")
        self._shown = len(turn.answer)

    def restyle(self) -> None:
        """Draw again with the colours of a new theme."""
        self._shown = -1
        if self.turn.open:
            self.stream()
        else:
            self.finish()

    def _markdown(self, source: str) -> Answer:
        theme = self.app.current_theme
        code = ("ansi_dark" if theme.dark else "ansi_light") if theme.ansi else None
        return Answer(source, self._styles(), code or ("monokai" if theme.dark else "friendly"))

    def _styles(self) -> Theme:
        return theme_from(lambda name: self.get_component_rich_style(name))


def _facts(turn: Turn) -> str:
    """`stopped · 41 tokens · 71.2 tok/s · 5 % slowdown · 480 tokens reused`."""
    parts = [turn.ending] if turn.ending else []
    if (stats := turn.stats) and stats.completion_tokens:
        parts += [f"{format.number(stats.completion_tokens)} tokens", format.speed(stats.decode_tokens_per_s)]
        if stats.lossless:
            parts.append("lossless")
        elif stats.slowdown_target_pct:
            parts.append(f"at {format.percent(stats.slowdown_target_pct)}")
        if stats.reused_tokens:
            parts.append(f"{format.number(stats.reused_tokens)} reused")
    if turn.dropped_messages:
        parts.append(f"context full: {turn.dropped_messages} oldest messages left out")
    return " · ".join(parts)
