"""One question at two positions of the slider, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Footer, Input, Static

from app import comparison_texts
from app.chat.screens.base import EngineScreen
from app.chat.widgets.comparison_pane import ComparisonPane
from app.chat.widgets.line_input import LineInput
from app.chat.widgets.position_picker import PositionPicker
from app.chat.widgets.tiny_notice import TinyNotice
from app.comparison import Answer, Comparison
from app.comparison_texts import NAMES
from app.session import Phase
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.commands import Command, Generate, Stop
from runtime.protocol.events import Event

REFRESH_S = 0.1
# A long text takes longer to draw, and the engine may need the processor.
REFRESH_S_PER_CHARACTER = 1 / 40_000
TITLE = "One question, two positions"
FIXED = "Positions stay while answers are being written."


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer that the user chose."""

    question: str
    answer: Answer


class ComparisonScreen(EngineScreen):
    """Shows a Comparison. When it is gone, `kept` holds the chosen answer, if one was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "compare", "Compare"),
        Binding("a", "keep(0)", "Keep A"),
        Binding("b", "keep(1)", "Keep B"),
        Binding("d", "difference", "Difference"),
        Binding("escape", "stop", "Stop", priority=True),
        Binding("escape", "leave", "Close", priority=True),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
    ]

    def __init__(self, comparison: Comparison, question: str = "", *, begin: bool = False) -> None:
        """`question` is what the line begins with; with `begin` it is compared at once."""
        super().__init__()
        self.comparison = comparison
        self.kept: Kept | None = None
        self._question, self._begin = question, begin
        self._chosen: int | None = None
        self._leaving = False
        self._drawn_at = 0.0

    def compose(self) -> ComposeResult:
        """Question, two panes, one line of help."""
        slider = self.chat_app.session.slider
        with Vertical(id="comparison"):
            question = LineInput(one_line(self._question), placeholder="Question", id="comparison-question")
            question.border_title = TITLE
            yield question
            with Container(id="sides"):
                yield ComparisonPane(self.comparison, 0, slider)
                yield ComparisonPane(self.comparison, 1, slider)
            yield Static(comparison_texts.HELP, id="comparison-help", markup=False)
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Begin, or wait for a question. The chat's figures are not those of what is written here."""
        self.chat_app.session.slider.lent = True
        self.set_interval(REFRESH_S, self._tick)
        if self._begin:
            self.action_compare()

    def on_unmount(self) -> None:
        """The slider is the chat's again."""
        self.chat_app.session.slider.lent = False

    def engine_event(self, event: Event) -> None:
        """What an answer's end brings: the other one, or the end of all."""
        was_running = self.comparison.running
        self._send(self.comparison.push(event))
        if self.comparison.running is not was_running:
            self._changed()
            if self._leaving and self.comparison.running is None:
                self._close()

    # What the user does

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_compare()

    @on(PositionPicker.Picked)
    def _picked(self, event: PositionPicker.Picked) -> None:
        if self.comparison.running:
            self._tell(FIXED)
        elif self.comparison.move(self._side(event.picker), event.position):
            self._changed()

    def action_compare(self) -> None:
        """Write what is missing."""
        if self.chat_app.session.phase is not Phase.READY:
            self._tell(f"The engine is not ready: {self.chat_app.session.phase.value}.")
        elif self._try(lambda: self.comparison.begin(self._asked())):
            self.query_one("#picker-b").focus()
            self._changed()

    def action_keep(self, side: int) -> None:
        """Take a side's answer into the conversation; what is still being written is stopped."""
        if not self.comparison.can_keep(side):
            return
        self._chosen = side
        if self.comparison.running is None:
            self._close()
        else:
            self._leaving = True
            self.action_stop()

    def action_difference(self) -> None:
        """Scroll both texts to where they part."""
        for pane in self.query(ComparisonPane):
            pane.show_difference()

    def action_page(self, direction: int) -> None:
        """Scroll both texts."""
        for pane in self.query(ComparisonPane):
            pane.page(direction)

    def action_stop(self) -> None:
        """End what is being written, and stay: what is there can be read and kept."""
        self._send(self.comparison.stop())
        self._changed()

    def action_leave(self) -> None:
        """Close, also while the engine is still stopping."""
        self._close()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that would do nothing now are not shown."""
        if action == "keep":
            return self.comparison.can_keep(int(str(parameters[0])))
        if action == "compare":
            return self.comparison.running is None
        if action in ("stop", "leave"):
            return (action == "stop") is self._can_stop
        return self.comparison.difference is not None if action == "difference" else True

    # Inside

    @property
    def _can_stop(self) -> bool:
        return self.comparison.running is not None and not self.comparison.stopping

    def _side(self, picker: PositionPicker) -> int:
        return NAMES.lower().index(str(picker.id)[-1])

    def _asked(self) -> str:
        """The question; one of several lines comes back whole if it was not changed."""
        typed = self.query_one(Input).value
        return self._question if typed == one_line(self._question) else typed

    def _try(self, intent: Callable[[], list[Command]]) -> bool:
        try:
            self._send(intent())
        except DecdecError as error:
            self._tell(error.sentence)
            return False
        return True

    def _send(self, commands: list[Command]) -> None:
        session = self.chat_app.session
        for command in commands:
            # To the chat this is an answer that no turn waits for: it stays busy until the engine is done.
            if isinstance(command, Generate):
                session.phase = Phase.ANSWERING
            elif isinstance(command, Stop):
                session.phase = Phase.STOPPING
            self.chat_app.send(command)

    def _changed(self) -> None:
        """An answer began or ended, or a position is another one."""
        self._show()
        self._tell(comparison_texts.state(self.comparison))
        self.refresh_bindings()

    def _close(self) -> None:
        if self._chosen is not None and (answer := self.comparison.answer(self._chosen)):
            self.kept = Kept(self.comparison.question, answer)
        if self.comparison.running is not None:
            self.chat_app.send(self.chat_app.session.slowdown())
        self.dismiss(None)

    def _tell(self, text: str) -> None:
        self.query_one("#comparison-help", Static).update(text)

    def _tick(self) -> None:
        answer = self.comparison.running
        pause = len(answer.text) * REFRESH_S_PER_CHARACTER if answer else 0.0
        if time.monotonic() - self._drawn_at >= pause:
            self._show()

    def _show(self) -> None:
        self._drawn_at = time.monotonic()
        for pane in self.query(ComparisonPane):
            pane.show()
