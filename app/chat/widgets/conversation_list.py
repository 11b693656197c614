"""The list of conversations, by day, with what was looked for marked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.style import Style
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app import format
from app.chat.widgets.conversation_line import COMPONENTS, Found, line
from app.history import dates
from app.history.listing import Entry, Page

# No conversation can have this id.
_MORE = " more"


class ConversationList(OptionList):
    """Posts OptionList's messages with a conversation's id, and `MoreWanted` at the end of what is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Open")]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"history--{part}" for part in COMPONENTS}

    class MoreWanted(Message):
        """Somebody went to the end, and there is more."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._page, self._found = Page(), Found()

    @property
    def chosen(self) -> Entry | None:
        """The highlighted conversation."""
        option = self.highlighted_option
        return next((each for each in self._page.entries if option and each.id == option.id), None)

    def show(self, page: Page, found: Found, choose: str = "") -> None:
        """Replace the list; `choose` is highlighted, or what was, or what stands in its place."""
        place, kept = self.highlighted or 0, self.chosen
        self._page, self._found = page, found
        self.set_options(list(self._options_of(page)))
        ids = [option.id for option in self.options]
        wanted = choose or (kept.id if kept else "")
        self.highlighted = ids.index(wanted) if wanted in ids else self._near(place)

    def _near(self, place: int) -> int | None:
        """The last conversation that does not stand below a place, else the first there is."""
        places = [n for n, option in enumerate(self.options) if not option.disabled and option.id != _MORE]
        return next((n for n in places if n >= place), places[-1] if places else None)

    def _options_of(self, page: Page) -> Iterator[Option]:
        day = ""
        width = max(self.scrollable_content_region.width - 2, 0)
        for entry in page.entries:
            if (now := dates.day(entry.updated, self._found.now)) != day:
                day = now
                yield Option(Content.assemble((day, self._style("day"))), disabled=True)
            yield Option(line(entry, width, self._found, self._style), entry.id)
        if page.total > len(page.entries):
            rest = format.number(page.total - len(page.entries))
            yield Option(Content.assemble((f"▼ {rest} older", self._style("day"))), _MORE)

    def _style(self, part: str) -> Style:
        return self.get_visual_style(f"history--{part}", partial=True)

    def on_resize(self, event: Resize) -> None:
        """Lines are as wide as the list."""
        self.show(self._page, self._found)

    @on(OptionList.OptionHighlighted)
    @on(OptionList.OptionSelected)
    def _at_the_end(self, event: OptionList.OptionMessage) -> None:
        if event.option_id == _MORE:
            event.stop()
            self.post_message(self.MoreWanted())
