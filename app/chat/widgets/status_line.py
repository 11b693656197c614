"""One line of facts: state, speed, context, model, device."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.widget import Widget

from app import format
from app.session import ChatSession, Phase
from app.text import one_line

BAR_CELLS = 8
# From this share of the context on, the meter warns.
WARN_SHARE = 0.8
WIDE = 80


class StatusLine(Widget):
    """Draws a session's state; call `refresh()` when it changed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "status--state",
        "status--value",
        "status--label",
        "status--warn",
        "status--device",
        "status--slow-device",
    }

    def __init__(self, session: ChatSession, id: str | None = None) -> None:
        super().__init__(id=id)
        self.session = session

    def render(self) -> Text:
        """State, speed and context on the left; model and device on the right, shortened to fit."""
        left, device = self._left(), self._device()
        room = self.content_size.width - left.cell_len - device.cell_len - 3
        model = Text(one_line(self.session.model) if room >= 6 else "", self._style("value"))
        model.truncate(max(room, 0), overflow="ellipsis")
        gap = max(1, self.content_size.width - left.cell_len - model.cell_len - device.cell_len - 2)
        line = Text(no_wrap=True, overflow="crop")
        return line.append(left).append(" " * gap).append(model).append("  ").append(device)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"status--{part}"))

    def _left(self) -> Text:
        text = Text().append(self._state(), self._style("state"))
        if speed := self.session.slider.tokens_per_s:
            text.append("  ").append(format.speed(speed), self._style("value"))
        if loaded := self.session.loaded:
            used = self.session.stats.context_used if self.session.stats else 0
            text.append("  ").append(self._meter(used, loaded.context_limit))
        return text

    def _state(self) -> str:
        session, loading = self.session, self.session.loading
        if session.phase is Phase.LOADING:
            share = f" {100 * loading.done // loading.total} %" if loading and loading.total else ""
            return f"loading{share}"
        turn = session.conversation.last
        if session.phase is Phase.ANSWERING:
            return "writing" if turn and turn.answer else "reading"
        return session.phase.value

    def _meter(self, used: int, limit: int) -> Text:
        share = used / limit if limit else 0.0
        warns = share >= WARN_SHARE
        style, mark = (self._style("warn"), "!") if warns else (self._style("value"), "")
        wide = self.content_size.width >= WIDE
        text = Text().append("context " if wide else "ctx ", self._style("label"))
        if wide and limit:
            full = min(BAR_CELLS, round(share * BAR_CELLS + 0.4 * (used > 0)))
            text.append("▰" * full, style).append("▱" * (BAR_CELLS - full), self._style("label")).append(" ")
        return text.append(f"{used}/{limit}{mark}" if limit else f"{used}", style)

    def _device(self) -> Text:
        loaded = self.session.loaded
        if loaded is None:
            return Text()
        if loaded.device.lower().startswith("cpu"):
            label = " CPU, no GPU used " if self.content_size.width >= WIDE else " CPU "
            return Text(label, self._style("slow-device"))
        return Text(f" {one_line(loaded.device)} ", self._style("device"))
