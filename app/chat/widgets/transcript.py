"""The conversation on screen, following the newest text until the user scrolls up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from textual import on
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from app.chat.widgets.turn import TurnView, ignore
from app.conversation import Conversation, Turn
from app.stream import Follow

REFRESH_S = 0.05
# A new size makes the layout move the view by itself for a moment; that is nobody scrolling.
SETTLE_S = 0.3
# Turns drawn at first, and more each time the view comes to the oldest: so a long conversation opens at once.
PAGE = 12


class Transcript(VerticalScroll, can_focus=False):
    """Turns of a conversation's path in order, the oldest ones drawn when somebody scrolls there."""

    class FollowChanged(Message):
        """The view began or ceased to follow."""

        def __init__(self, on: bool) -> None:
            super().__init__()
            self.on = on

    class Left(Message):
        """The keyboard went below the last turn."""

    def __init__(self, before_drawing: Callable[[Turn], None] = ignore, id: str | None = None) -> None:
        super().__init__(id=id)
        self._before_drawing = before_drawing
        self._follow = Follow()
        self._conversation = Conversation()
        self._views: list[TurnView] = []
        self._earlier: list[Turn] = []
        self._drawing = False
        self._resized_at = 0.0

    def on_mount(self) -> None:
        """Look for new text often; the answer itself decides when drawing is due."""
        self.set_interval(REFRESH_S, self._tick)

    @property
    def selected(self) -> Turn | None:
        """The turn that has the keyboard."""
        return next((view.turn for view in self._views if view.has_focus), None)

    def show(self, conversation: Conversation, greeting: str) -> None:
        """Draw a conversation, or the greeting if it is empty; turns that stand there already stay."""
        turns = conversation.turns
        kept = self._kept(turns) if conversation is self._conversation else 0
        self._conversation = conversation
        with self.app.batch_update():
            if not kept:
                self._clear()
                self._earlier, turns = turns[:-PAGE], turns[-PAGE:]
            else:
                turns = turns[len(self._earlier) + kept :]
                self._drop_from(kept)
            self._show_greeting(greeting if not conversation.turns else "")
            self._append(turns)
        self.follow()
        self._fill_soon()

    def greet(self, greeting: str) -> None:
        """Change the greeting, if one is shown."""
        for widget in self.query(".greeting").results(Static):
            widget.update(greeting)

    def add(self, turn: Turn) -> None:
        """Append a turn and go to the end."""
        self._show_greeting("")
        self._append([turn])
        self.follow()

    def finish(self) -> None:
        """The newest answer is over."""
        if self._views and not self._views[-1].turn.open:
            self._views[-1].finish()
            self._keep_end()

    def reopen(self) -> None:
        """The newest answer goes on."""
        if self._views:
            self._views[-1].restyle()
            self.follow()

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._set_follow(True)
        self._keep_end()

    def restyle(self) -> None:
        """Draw every answer again after a change of theme."""
        for view in self._views:
            view.restyle()

    def select(self, direction: int = -1, beside: TurnView | None = None) -> None:
        """Give the keyboard to the last turn, or to the one before or behind another."""
        at = len(self._views) if beside is None else self._views.index(beside)
        if at + direction >= len(self._views) or not direction:
            self.post_message(self.Left())
        elif self._views:
            view = self._views[max(at + direction, 0)]
            view.focus(scroll_visible=False)
            self.scroll_to_widget(view, animate=False)

    def select_turn(self, turn: Turn) -> None:
        """Give the keyboard to this turn."""
        for view in self._views:
            if view.turn is turn:
                self.call_after_refresh(view.focus)

    def toggle_thought(self, turn: Turn) -> bool:
        """Unfold or fold the thinking of a turn; whether there is any."""
        return any(view.toggle_thought() for view in self._views if view.turn is turn)

    @on(TurnView.Walked)
    def _walked(self, event: TurnView.Walked) -> None:
        event.stop()
        self.select(event.direction, event.view)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Hold the view where a user scrolled up; follow again at the end; draw what is older at the top."""
        super().watch_scroll_y(old_value, new_value)
        if new_value < 1 and old_value > new_value:
            self._want_earlier()
        if self._follow.on and time.monotonic() - self._resized_at < SETTLE_S:
            self._keep_end()
            return
        before = self._follow.on
        self._follow.scrolled(old_value, new_value, self.max_scroll_y)
        if before != self._follow.on:
            self.post_message(self.FollowChanged(self._follow.on))

    def watch_virtual_size(self) -> None:
        """Text that takes its place only after the view went to the end is followed too."""
        self._keep_end()

    def on_resize(self, event: Resize) -> None:
        """A new size keeps the end in view."""
        self._resized_at = time.monotonic()
        self._keep_end()
        self._fill_soon()

    def _tick(self) -> None:
        if self._views and self._views[-1].turn.open and self._views[-1].stale:
            self._views[-1].stream()
            self._keep_end()

    def _keep_end(self) -> None:
        if self._follow.on:
            self.call_after_refresh(self._to_end)

    def _to_end(self) -> None:
        # Somebody may have scrolled up since it was asked for.
        if self._follow.on:
            self.scroll_end(animate=False, force=True, immediate=True)

    def _set_follow(self, on: bool) -> None:
        if self._follow.on != on:
            self._follow.on = on
            self.post_message(self.FollowChanged(on))

    # Drawn turns

    def _kept(self, turns: Sequence[Turn]) -> int:
        """How many drawn turns the path still begins with; 0 when anything older than those changed."""
        if turns[: len(self._earlier)] != self._earlier:
            return 0
        drawn = list(zip(self._views, turns[len(self._earlier) :], strict=False))
        return next((at for at, (view, turn) in enumerate(drawn) if view.turn is not turn), len(drawn))

    def _append(self, turns: Sequence[Turn]) -> None:
        views = [self._view(turn) for turn in turns]
        self._views += views
        self.mount_all(views)

    def _view(self, turn: Turn) -> TurnView:
        variants = self._conversation.variants(turn)
        place = (variants.index(turn) + 1, len(variants))
        return TurnView(turn, place, self._before_drawing)

    def _drop_from(self, kept: int) -> None:
        for view in self._views[kept:]:
            view.remove()
        del self._views[kept:]

    def _clear(self) -> None:
        self._views = []
        self.remove_children()

    def _show_greeting(self, greeting: str) -> None:
        self.query(".greeting").remove()
        if greeting:
            self.mount(Static(greeting, classes="greeting"))

    def _fill_soon(self) -> None:
        if self._earlier:
            self.set_timer(SETTLE_S, self._fill)

    def _fill(self) -> None:
        """Nobody can scroll to older turns where the newest ones leave room."""
        if self._views and self._views[0].size.height and not self.max_scroll_y:
            self._want_earlier()

    def _want_earlier(self) -> None:
        """Once until it is done: a scroll that is animated comes to the top several times."""
        if self._earlier and not self._drawing:
            self._drawing = True
            self.call_after_refresh(self._draw_earlier)

    def _draw_earlier(self) -> None:
        """One more page above, with the view held where it is."""
        self._earlier, turns = self._earlier[:-PAGE], self._earlier[-PAGE:]
        if not turns or not self._views:
            self._drawing = False
            return
        first, views = self._views[0], [self._view(turn) for turn in turns]
        self._views = views + self._views
        self.mount_all(views, before=first)
        self.call_after_refresh(self._hold, first)

    def _hold(self, first: TurnView) -> None:
        if first.is_mounted:
            self.scroll_to_widget(first, animate=False, top=True, immediate=True)
        self._drawing = False
        self._fill_soon()
