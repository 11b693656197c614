"""The quality slider: how much speed is given back for quality, moved by keys or mouse at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from app.chat.widgets.rail import COMPONENTS, MOVE_BINDINGS
from app.chat.widgets.slider_lines import SliderLines
from app.slider import DETENTS, Position, SliderState

# Lines drawn in a terminal of at least so many rows.
HEIGHTS = ((40, 7), (24, 4), (0, 2))
# Figures settle while nothing else happens.
TICK_S = 0.5


class QualitySlider(Widget, can_focus=True):
    """Draws a SliderState and moves it. Posts `Moved` for every change of the target."""

    # A click that took the keys away from the prompt would send the next words nowhere.
    FOCUS_ON_CLICK = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVE_BINDINGS,
        Binding("end", "end", "Right end", show=False),
        Binding("5", "lossless", "Lossless", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    class Moved(Message):
        """The target changed, by the user or by auto."""

    class AutoEnded(Message):
        """A move by the user switched auto off."""

    class TuneWanted(Message):
        """The user clicked the offer to tune."""

    def __init__(self, state: SliderState, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state
        self._ghost: Position | None = None
        self._was_settling = False

    def on_mount(self) -> None:
        """Hear of auto's moves."""
        self.state.on_auto_move = self._moved
        self.set_interval(TICK_S, self._tick)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """More lines in a higher terminal."""
        return next(lines for rows, lines in HEIGHTS if viewport.height >= rows)

    # Keys

    def action_move(self, direction: int, fine: bool = False) -> None:
        """A detent or half a percent down (-1) or up (1)."""
        self._by_hand(lambda: self.state.step(direction, fine))

    def action_jump(self, detent: int) -> None:
        """To a detent by its number."""
        self._by_hand(lambda: self.state.move_to(DETENTS[detent]))

    def action_lossless(self) -> None:
        """To the stop beyond the right end."""
        self._by_hand(self.state.move_lossless)

    def action_end(self) -> None:
        """To the rightmost stop there is."""
        self._by_hand(lambda: self.state.move_lossless() or self.state.move_to(DETENTS[-1]))

    def keep_speed(self, floor: float) -> None:
        """Let auto keep so many tokens/s from now on."""
        if self.state.keep_speed(floor):
            self._moved()
        self.refresh()

    def end_auto(self) -> None:
        """Give the slider back to the user, where it was."""
        if self.state.auto.on:
            if self.state.end_auto():
                self._moved()
            self.post_message(self.AutoEnded())
            self.refresh()

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the thumb; without a profile a click asks for tuning."""
        position = self._at(event)
        if not self.state.enabled or (position is None and self.state.overruns):
            self.post_message(self.TuneWanted())
        elif position is not None:
            self.capture_mouse()
            self._drag(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag, or show what a click would bring."""
        if self.app.mouse_captured is self:
            self._drag(event.x)
        self._show_ghost(self._at(event))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        self.release_mouse()
        self._show_ghost(self._at(event))

    def on_leave(self) -> None:
        """The mouse is elsewhere."""
        self._show_ghost(None)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Wheel up: better."""
        event.stop()
        self.action_move(1, True)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Wheel down: faster."""
        event.stop()
        self.action_move(-1, True)

    def _at(self, event: events.MouseEvent) -> Position | None:
        """The position under the mouse; None beside the rail and what belongs to it."""
        top = self.gutter.top
        touchable = 1 if self.content_size.height < HEIGHTS[1][1] else self.content_size.height // 2
        if not self.state.enabled or not top <= event.y < top + touchable:
            return None
        return self._position(event.x)

    def _position(self, x: int) -> Position:
        lines = self._lines()
        return lines.scale.at(x - self.gutter.left - len(lines.captions[0]))

    def _drag(self, x: int) -> None:
        position, state = self._position(x), self.state
        self._by_hand(state.move_lossless if position.lossless else lambda: state.move_to(position.pct))

    def _show_ghost(self, position: Position | None) -> None:
        if position != self._ghost:
            self._ghost = position
            self.refresh()

    # Changes

    def _by_hand(self, move: Callable[[], bool]) -> None:
        """A move by the user, after which auto lets go."""
        auto = self.state.auto.on
        if move():
            self._moved()
        if auto and not self.state.auto.on:
            self.post_message(self.AutoEnded())

    def _moved(self) -> None:
        self.post_message(self.Moved())
        self.refresh()

    def _tick(self) -> None:
        """What settles, or ceases to because nothing is written any more, is drawn without an event."""
        if self._was_settling or self.state.settling:
            self._was_settling = self.state.settling
            self.refresh()

    # Drawing

    def _lines(self) -> SliderLines:
        return SliderLines(self.state, self.content_size.width, self._style, self._ghost)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"slider--{part}"))

    def render(self) -> Text:
        """As many lines as there is room for."""
        lines = self._lines().lines(self.content_size.height)
        return Text("\n", no_wrap=True, overflow="crop").join(lines)
