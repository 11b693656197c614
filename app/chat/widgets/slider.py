"""The quality slider: how much speed is given back for quality, moved by keys or mouse at any time."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from app import format
from app.slider import DETENTS, Position, Scale, SliderState

LABELS = ("0", "2.5", "5", "10", "20 %")
LOSSLESS = "lossless"
LEFT, RIGHT = "faster ", " better"
# Below this height there is no room for the labels, below this width none for the captions.
FULL_HEIGHT, FULL_WIDTH = 3, 72


class QualitySlider(Widget, can_focus=True):
    """Draws a SliderState and moves it. Posts `Moved` for every change of the target."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1, True)", "Faster", show=False),
        Binding("right", "move(1, True)", "Better", show=False),
        Binding("shift+left,down", "move(-1)", "Lower detent", show=False),
        Binding("shift+right,up", "move(1)", "Higher detent", show=False),
        Binding("home", "jump(0)", "0 %", show=False),
        Binding("end", "end", "Right end", show=False),
        *(Binding(str(i), f"jump({i})", format.percent(pct), show=False) for i, pct in enumerate(DETENTS)),
        Binding("5", "lossless", "Lossless", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "slider--thumb",
        "slider--paid",
        "slider--free",
        "slider--rail",
        "slider--label",
        "slider--value",
        "slider--reason",
    }

    class Moved(Message):
        """The target changed."""

    class TuneWanted(Message):
        """The user clicked the offer to tune."""

    def __init__(self, state: SliderState, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state

    # Keys

    def action_move(self, direction: int, fine: bool = False) -> None:
        """One detent or half a percent down (-1) or up (1)."""
        self._moved(self.state.step(direction, fine))

    def action_jump(self, detent: int) -> None:
        """To a detent by its number."""
        self._moved(self.state.move_to(DETENTS[detent]))

    def action_lossless(self) -> None:
        """To the stop beyond the right end."""
        self._moved(self.state.move_lossless())

    def action_end(self) -> None:
        """To the rightmost stop there is."""
        self._moved(self.state.move_lossless() or self.state.move_to(DETENTS[-1]))

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the thumb; without a profile a click asks for tuning."""
        if not self.state.enabled:
            self.post_message(self.TuneWanted())
            return
        if self._on_track(event.y):
            self.capture_mouse()
            self._drag(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag."""
        if self.app.mouse_captured is self:
            self._drag(event.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        self.release_mouse()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Wheel up: better."""
        event.stop()
        self.action_move(1, True)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Wheel down: faster."""
        event.stop()
        self.action_move(-1, True)

    def _on_track(self, y: int) -> bool:
        return y < self.content_size.height - 1

    def _drag(self, x: int) -> None:
        cell = x - self.gutter.left - len(self._captions()[0])
        position = self._scale().at(cell)
        moved = self.state.move_lossless() if position.lossless else self.state.move_to(position.pct)
        self._moved(moved)

    def _moved(self, changed: bool) -> None:
        if changed:
            self.post_message(self.Moved())
            self.refresh()

    # Drawing

    def _captions(self) -> tuple[str, str]:
        return (LEFT, RIGHT) if self.content_size.width >= FULL_WIDTH else ("", "")

    def _scale(self) -> Scale:
        left, right = self._captions()
        return Scale(self.content_size.width - len(left) - len(right), self.state.has_lossless)

    def render(self) -> Text:
        """Track, labels when there is room, and the readout."""
        lines = [self._track(), self._readout()]
        if self.content_size.height >= FULL_HEIGHT:
            lines.insert(1, self._labels())
        return Text("\n", no_wrap=True, overflow="crop").join(lines)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"slider--{part}"))

    def _track(self) -> Text:
        scale, position = self._scale(), self.state.position
        left, right = self._captions()
        thumb = scale.cell(position)
        free = scale.cell(Position(self.state.free_until)) if self.state.free_until else -1
        stops = {scale.cell(Position(detent)) for detent in DETENTS}
        text = Text().append(left, self._style("label"))
        for cell in range(scale.length):
            text.append(*self._cell(cell, thumb, free, cell in stops))
        if self.state.has_lossless:
            chosen = position.lossless
            text.append(" " * (scale.GAP - 1))
            text.append("◆" if chosen else "◇", self._style("thumb" if chosen else "label"))
        return text.append(right, self._style("label"))

    def _cell(self, cell: int, thumb: int, free: int, stop: bool) -> tuple[str, str]:
        if not self.state.enabled:
            return "┼" if stop else "─", self._style("rail")
        if cell == thumb:
            return "●", self._style("thumb")
        filled = cell < thumb
        style = "free" if cell <= free else "paid" if filled else "rail"
        return ("┿" if stop else "━") if filled else ("┼" if stop else "─"), self._style(style)

    def _labels(self) -> Text:
        scale, (left, right) = self._scale(), self._captions()
        line = " " * len(left) + scale.labels(LABELS) + " " * len(right)
        if self.state.has_lossless:
            line = line[: -len(LOSSLESS)] + LOSSLESS
        return Text(line, self._style("label"))

    def _readout(self) -> Text:
        if not self.state.enabled:
            reason, offer = f"Slider off: {self.state.reason}. ", self._offer()
            return Text(reason, self._style("reason" if offer else "label")).append(
                offer, self._style("value")
            )
        text = Text()
        for before, value, after in self._facts():
            gap = "   " if text else ""
            if text.cell_len + len(gap + before + value + after) > self.content_size.width:
                break
            text.append(gap + before, self._style("label"))
            text.append(value, self._style("value")).append(after, self._style("label"))
        return text

    def _offer(self) -> str:
        return "F9 tunes." if "tuned" in self.state.reason else ""

    def _facts(self) -> list[tuple[str, str, str]]:
        """Facts of the position, most important first: text before a value, the value, text after."""
        state, stats = self.state, self.state.current
        lossless = state.position.lossless
        measured = stats.slowdown_measured_pct if stats else None
        facts = [
            ("target ", "lossless" if lossless else format.percent(state.position.pct), ""),
            ("measured ", "–" if measured is None else format.percent(measured), ""),
        ]
        if self.state.overruns:
            facts.append(("", "above target", ", F9 tunes again"))
        if state.tokens_per_s:
            facts.append(("", format.speed(state.tokens_per_s).removesuffix(" tok/s"), " tok/s"))
        if stats and not lossless:
            facts.append(("", format.number(stats.channels_corrected), " channels corrected"))
            if stats.corrections_left_out:
                facts.append(("", format.number(stats.corrections_left_out), " left out, inputs not finite"))
        facts += self._region()
        return facts if lossless else [*facts, ("k_chunk ", format.k_chunk(state.table), "")]

    def _region(self) -> list[tuple[str, str, str]]:
        """Where correction is free, or where it begins."""
        if self.state.free_until:
            return [("free to ", format.percent(self.state.free_until), "")]
        gain = self.state.first_gain
        return [("corrects from ", format.percent(gain), "")] if gain else []
