"""The conversation on screen, following the newest text until the user scrolls up."""

from __future__ import annotations

import time

from textual.containers import VerticalScroll
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from app.chat.widgets.answer import AnswerView
from app.chat.widgets.question import QuestionView
from app.conversation import Conversation, Turn
from app.stream import Follow

REFRESH_S = 0.05
# A new size makes the layout move the view by itself for a moment; that is nobody scrolling.
SETTLE_S = 0.3


class Transcript(VerticalScroll, can_focus=False):
    """Questions and answers in order."""

    class FollowChanged(Message):
        """The view began or ceased to follow."""

        def __init__(self, on: bool) -> None:
            super().__init__()
            self.on = on

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._follow = Follow()
        self._answer: AnswerView | None = None
        self._resized_at = 0.0

    def on_mount(self) -> None:
        """Look for new text often; the answer itself decides when drawing is due."""
        self.set_interval(REFRESH_S, self._tick)

    def show(self, conversation: Conversation, greeting: str) -> None:
        """Replace everything by a conversation, or by the greeting if it is empty."""
        self._answer = None
        self.remove_children()
        if not conversation.turns:
            self.mount(Static(greeting, classes="greeting"))
        for turn in conversation.turns:
            self.add(turn)
        self.follow()

    def greet(self, greeting: str) -> None:
        """Change the greeting, if one is shown."""
        for widget in self.query(".greeting").results(Static):
            widget.update(greeting)

    def add(self, turn: Turn) -> None:
        """Append a turn and go to the end."""
        self.query(".greeting").remove()
        self._answer = AnswerView(turn)
        self.mount(QuestionView(turn.question), self._answer)
        self.follow()

    def finish(self) -> None:
        """The newest answer is over."""
        if self._answer and not self._answer.turn.open:
            self._answer.finish()
            self._keep_end()

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._set_follow(True)
        self._keep_end()

    def restyle(self) -> None:
        """Draw every answer again after a change of theme."""
        for answer in self.query(AnswerView):
            answer.restyle()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Hold the view where a user scrolled up; follow again at the end."""
        super().watch_scroll_y(old_value, new_value)
        if self._follow.on and time.monotonic() - self._resized_at < SETTLE_S:
            self.call_after_refresh(self._keep_end)
            return
        before = self._follow.on
        self._follow.scrolled(old_value, new_value, self.max_scroll_y)
        if before != self._follow.on:
            self.post_message(self.FollowChanged(self._follow.on))

    def on_resize(self, event: Resize) -> None:
        """A new size keeps the end in view."""
        self._resized_at = time.monotonic()
        self._keep_end()

    def _tick(self) -> None:
        if self._answer and self._answer.stale and self._answer.turn.open:
            self._answer.stream()
            self._keep_end()

    def _keep_end(self) -> None:
        if self._follow.on:
            self.scroll_end(animate=False, force=True)

    def _set_follow(self, on: bool) -> None:
        if self._follow.on != on:
            self._follow.on = on
            self.post_message(self.FollowChanged(on))
