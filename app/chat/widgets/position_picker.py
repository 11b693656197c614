"""A small slider that chooses a position without moving the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from app import format
from app.chat.widgets.rail import COMPONENTS, MOVE_BINDINGS, Rail
from app.slider import DETENTS, Position, Scale, SliderState
from app.slider.position import LOSSLESS

# The longest value that stands behind the rail, with a gap.
VALUE_CELLS = len("  lossless")


class PositionPicker(Widget, can_focus=True):
    """Draws and moves one position along the rail of a SliderState, which itself stays where it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVE_BINDINGS,
        Binding("end,5", "lossless", "Lossless", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    class Picked(Message):
        """Another position is wanted."""

        def __init__(self, picker: PositionPicker, position: Position) -> None:
            super().__init__()
            self.picker, self.position = picker, position

        @property
        def control(self) -> PositionPicker:
            """The sender."""
            return self.picker

    def __init__(self, title: str, state: SliderState, position: Callable[[], Position], id: str) -> None:
        """`position`: where it stands, asked for at each drawing."""
        super().__init__(id=id)
        self._title, self._state, self._position = title, state, position

    def action_move(self, direction: int, fine: bool = False) -> None:
        """One detent or half a percent down (-1) or up (1)."""
        self._pick(self._position().step(direction, fine, self._state.has_lossless))

    def action_jump(self, detent: int) -> None:
        """To a detent by its number."""
        self._pick(Position(DETENTS[detent]))

    def action_lossless(self) -> None:
        """To the rightmost stop there is."""
        self._pick(LOSSLESS if self._state.has_lossless else Position(DETENTS[-1]))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """To where the mouse is."""
        self._pick(self._scale().at(event.x - self.gutter.left - len(self._title) - 1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Wheel up: better."""
        event.stop()
        self.action_move(1, True)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Wheel down: faster."""
        event.stop()
        self.action_move(-1, True)

    def render(self) -> Text:
        """Title, rail, value."""
        position = self._position()
        value = "lossless" if position.lossless else format.percent(position.pct)
        rail = Rail(self._scale(), self._style, self._state.path.free_until, self._state.enabled)
        text = Text(f"{self._title} ", self._style("value"), no_wrap=True, overflow="crop")
        return text.append(rail.draw(position)).append(f"  {value}", self._style("value"))

    def _pick(self, position: Position) -> None:
        if position != self._position():
            self.post_message(self.Picked(self, position))

    def _scale(self) -> Scale:
        room = self.content_size.width - len(self._title) - 1 - VALUE_CELLS
        return Scale(max(room, 8), self._state.has_lossless)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"slider--{part}"))
