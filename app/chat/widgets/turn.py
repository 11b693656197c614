"""One question with its answer: blocks while it streams, a single cheap block when it is complete."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.theme import Theme
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from app.chat.markdown import STYLES, Answer, theme_from
from app.chat.widgets.ending import TOOLS, EndingView
from app.chat.widgets.question import QuestionView
from app.chat.widgets.thought import ThoughtView
from app.conversation import Turn
from app.stream import BlockStream, Pace
from app.thinking import split


def ignore(turn: Turn) -> None:
    """For turns that nobody keeps."""


class TurnView(Vertical, can_focus=True):
    """Draws a turn. `stream` may be called at any rate; `finish` once it has ended.

    Focused by keys, so that a click into the text does not take the keyboard from the prompt.
    """

    FOCUS_ON_CLICK = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {*STYLES, "answer--code-block"}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"tool('{name}')", word, show=False) for key, name, word in TOOLS),
        Binding("up,k", "walk(-1)", "Message before", show=False),
        Binding("down,j", "walk(1)", "Message behind", show=False),
        Binding("escape,enter,i", "walk(0)", "Back to the prompt", show=False),
    ]

    class Walked(Message):
        """The keyboard leaves this turn: to the one before (-1), behind (1), or to the prompt (0)."""

        def __init__(self, view: TurnView, direction: int) -> None:
            super().__init__()
            self.view, self.direction = view, direction

    def __init__(
        self, turn: Turn, place: tuple[int, int] = (1, 1), before_drawing: Callable[[Turn], None] = ignore
    ) -> None:
        """`place`: which variant it is, of how many. `before_drawing` hears of text that comes on screen."""
        super().__init__(classes="turn")
        self.turn, self._before_drawing = turn, before_drawing
        self._pace, self._blocks = Pace(), BlockStream()
        self._shown = 0
        self._thought = ThoughtView()
        self._tail = Static(classes="answer-block")
        self._ending = EndingView(turn, place)

    def compose(self) -> ComposeResult:
        """Question, thinking, an empty block, and the line that tells how it ended."""
        yield QuestionView(self.turn.question)
        yield self._thought
        yield self._tail
        yield self._ending

    def on_mount(self) -> None:
        """Show what is there."""
        self.restyle()

    @property
    def stale(self) -> bool:
        """Whether text came that is not on screen and may be drawn now."""
        return len(self.turn.answer) != self._shown and self._pace.due(time.monotonic())

    def stream(self) -> None:
        """Draw the text so far: settled blocks once, the last block again."""
        started = time.monotonic()
        self._before_drawing(self.turn)
        parts = split(self.turn.answer)
        self._thought.show(parts)
        for block in self._blocks.push(parts.text):
            classes = "answer-block -joined" if block.joined else "answer-block"
            self.mount(Static(self._markdown(block.source), classes=classes), before=self._tail)
        self._draw_tail(self._blocks.tail)
        self.call_after_refresh(lambda: self._pace.drew(started, time.monotonic()))

    def finish(self) -> None:
        """Replace the blocks by the whole source in one, so that what is seen is what is stored."""
        parts = split(self.turn.answer)
        with self.app.batch_update():
            for block in self.query(".answer-block"):
                if block is not self._tail:
                    block.remove()
            self._blocks = BlockStream()
            self._thought.show(parts)
            self._draw_tail(parts.text)

    def restyle(self) -> None:
        """Draw everything again: at first, with the colours of a new theme, or when an answer goes on."""
        if self.turn.open:
            self.stream()
        else:
            self.finish()

    def toggle_thought(self) -> bool:
        """Unfold or fold the thinking; whether there is any."""
        return self._thought.toggle()

    def action_tool(self, name: str) -> None:
        """Something is to be done to this turn."""
        self._ending.action_tool(name)

    def action_walk(self, direction: int) -> None:
        """Give the keyboard on."""
        self.post_message(self.Walked(self, direction))

    def on_focus(self) -> None:
        """Tell what can be done, and with which keys."""
        self._ending.show(tools=True, keys=True)

    def on_blur(self) -> None:
        """The plain facts again."""
        self._ending.show()

    def on_enter(self, event: events.Enter) -> None:
        """The mouse sees what can be done."""
        if not self.has_focus:
            self._ending.show(tools=True)

    def on_leave(self, event: events.Leave) -> None:
        """The plain facts again, unless the mouse went to a part of this turn."""
        if not self.has_focus and not self.is_mouse_over:
            self._ending.show()

    def _draw_tail(self, source: str) -> None:
        self._tail.update(self._markdown(source))
        self._tail.display = bool(source)
        self._shown = len(self.turn.answer)
        self._ending.show(tools=self.has_focus, keys=self.has_focus)

    def _markdown(self, source: str) -> Answer:
        theme = self.app.current_theme
        code = ("ansi_dark" if theme.dark else "ansi_light") if theme.ansi else None
        return Answer(source, self._styles(), code or ("monokai" if theme.dark else "friendly"))

    def _styles(self) -> Theme:
        return theme_from(lambda name: self.get_component_rich_style(name))
