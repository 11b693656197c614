"""The slider's rail: stops, thumb, free part, and where a click would go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual.binding import Binding

from app import format
from app.slider import DETENTS, Position, Scale

# Parts of the drawing: classes `slider--<part>` of the widget that draws.
PARTS = ("thumb", "paid", "free", "rail", "label", "value", "reason", "mark")
COMPONENTS = {f"slider--{part}" for part in PARTS}
Styles = Callable[[str], str]
# Keys of a widget that moves along it, by its actions `move` and `jump`.
MOVE_BINDINGS = (
    Binding("left", "move(-1, True)", "Faster", show=False),
    Binding("right", "move(1, True)", "Better", show=False),
    Binding("shift+left,down", "move(-1)", "Lower detent", show=False),
    Binding("shift+right,up", "move(1)", "Higher detent", show=False),
    Binding("home", "jump(0)", "0 %", show=False),
    *(Binding(str(i), f"jump({i})", format.percent(pct), show=False) for i, pct in enumerate(DETENTS)),
)


@dataclass(frozen=True, slots=True)
class Rail:
    """One line. `free_until`: end of the free part in percent; `ghost`: the position under the mouse.
    `dead_until`: up to there nothing is corrected.

    The free and the dead part have characters of their own, so that they are seen without colours too.
    """

    scale: Scale
    style: Styles
    free_until: float = 0.0
    enabled: bool = True
    dead_until: float = 0.0

    def draw(self, position: Position, ghost: Position | None = None) -> Text:
        """The line with the thumb at a position."""
        thumb = self.scale.cell(position)
        under = self.scale.cell(ghost) if ghost and ghost != position else None
        stops = {self.scale.cell(Position(detent)) for detent in DETENTS}
        text = Text()
        for cell in range(self.scale.length):
            if cell == under and self.enabled:
                text.append("○", self.style("value"))
            else:
                text.append(*self._cell(cell, thumb, cell in stops))
        return text.append(self._end(position, ghost)) if self.scale.lossless else text

    def _cell(self, cell: int, thumb: int, stop: bool) -> tuple[str, str]:
        if not self.enabled:
            return "┼" if stop else "─", self.style("rail")
        if cell == thumb:
            return "●", self.style("thumb")
        if cell < self.scale.cell(Position(self.dead_until)):
            return "┊" if stop else "┈", self.style("rail")
        filled = cell < thumb
        if self.free_until and cell <= self.scale.cell(Position(self.free_until)):
            glyphs = "╪═" if filled else "┼╌"
            return glyphs[0 if stop else 1], self.style("free")
        glyphs = "┿━" if filled else "┼─"
        return glyphs[0 if stop else 1], self.style("paid" if filled else "rail")

    def _end(self, position: Position, ghost: Position | None) -> Text:
        """The lossless stop behind a gap."""
        chosen = position.lossless
        under = bool(ghost and ghost.lossless)
        style = "thumb" if chosen else "value" if under else "label"
        text = Text(" " * (self.scale.gap - 1))
        return text.append("◆" if chosen else "◈" if under else "◇", self.style(style))
