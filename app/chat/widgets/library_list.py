"""The list of models: sections of rows; a click marks, a second one or Enter chooses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.chat.widgets.library_rows import COMPONENTS, RowPainter
from app.library.rows import OfferRow, PullRow, Row, Section
from app.text import one_line

# Left and right of a row: padding, scroll bar.
BESIDE_ROW = 3


class LibraryList(OptionList):
    """Shows sections; keeps the mark on the same row while they change. Posts `Marked` and `Chosen`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Choose")]

    class Marked(Message):
        """The mark moved to another row."""

    class Chosen(Message):
        """Enter or a second click on a row."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sections: tuple[Section, ...] = ()
        self._rows: dict[str, Row] = {}

    @property
    def marked(self) -> Row | None:
        """The row with the mark; None in an empty list."""
        option = self.highlighted_option
        return self._rows.get(option.id) if option and option.id else None

    def show(self, sections: tuple[Section, ...]) -> None:
        """Draw newer sections."""
        same = _layout(sections) == _layout(self._sections)
        before = self._rows
        self._sections = sections
        self._rows = {row.key: row for section in sections for row in section.rows}
        if not (same and self.option_count):
            self._fill()
            return
        changed = (key for key, row in self._rows.items() if isinstance(row, PullRow) or row != before[key])
        self._repaint(changed)

    def mark(self, key: str) -> bool:
        """Move the mark to a row; whether it is in the list."""
        if key not in self._rows:
            return False
        self.highlighted = self.get_option_index(key)
        return True

    def on_mount(self) -> None:
        """Colours are those of the theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._fill())

    def on_resize(self) -> None:
        """Rows are as wide as the list."""
        self._repaint(self._rows)

    def _fill(self) -> None:
        """Build the list anew, the mark where it was or as near as can be."""
        before, index = self.marked_key, self.highlighted or 0
        painter = self._painter()
        options: list[Option] = []
        for number, section in enumerate(self._sections):
            title = Text(one_line(section.title), self._style("title"), no_wrap=True, overflow="ellipsis")
            options.append(Option(title, f"title:{number}", disabled=True))
            options += [Option(painter.paint(row), row.key) for row in section.rows]
        top = self.scroll_y
        self.set_options(options)
        self.scroll_to(y=top, animate=False)
        if not (before and self.mark(before)) and options:
            self.highlighted = min(index, len(options) - 1)
            if self.marked is None:
                self.action_cursor_down()

    @property
    def marked_key(self) -> str:
        """Of the row with the mark, whether it is still listed or not; empty for none."""
        option = self.highlighted_option
        return option.id or "" if option else ""

    def _repaint(self, keys: Iterable[str]) -> None:
        painter = self._painter()
        for key in keys:
            self.replace_option_prompt(key, painter.paint(self._rows[key]))

    def _painter(self) -> RowPainter:
        names = [row.label if isinstance(row, OfferRow) else row.name for row in self._rows.values()]
        return RowPainter.fitting(self._style, max(20, self.size.width - BESIDE_ROW), names)

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"library--{part}", partial=True))

    async def _on_click(self, event: events.Click) -> None:
        """The first click marks; what is marked already is chosen by the list's own handler."""
        clicked = event.style.meta.get("option")
        if clicked is not None and clicked != self.highlighted:
            event.prevent_default()
            if not self.get_option_at_index(clicked).disabled:
                self.highlighted = clicked

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.post_message(self.Marked())

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if row := self.marked:
            self.post_message(self.Chosen(row))


def _layout(sections: tuple[Section, ...]) -> list[tuple[str, list[str]]]:
    return [(section.title, [row.key for row in section.rows]) for section in sections]
