"""Everything that can be set: pages of rows, with what each means beside or below."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import OptionList, Static, Tab, Tabs
from textual.widgets.option_list import Option

from app.chat.screens.base import LOW_HEIGHTS, EngineScreen
from app.chat.screens.choice import Choice, ChoiceScreen
from app.chat.settings import FolderPage, KeysPage, OptionsPage, Page, Row
from app.chat.widgets.tiny_notice import TinyNotice
from app.options import Applies, Section
from runtime.errors import DecdecError

OWN = "• "
_OFFERS = {
    Applies.LOAD: "Some changes count when the model is loaded again: Ctrl+R does that now.",
    Applies.START: "Some changes count when the engine starts again: Ctrl+R does that now.",
}
NOW = Choice("now", "Load the model again now", "Takes as long as at the start; the conversation stays.")
LATER = Choice("", "Later", "They count from the next load on.")


class SettingsScreen(EngineScreen):
    """Pages of `app.chat.settings`. Changes count at once where they can."""

    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = LOW_HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f10", "leave", "Close", priority=True),
        Binding("tab", "page(1)", "Next page", priority=True),
        Binding("shift+tab", "page(-1)", "Page before", priority=True),
        Binding("left", "step(-1)", "Less"),
        Binding("right", "step(1)", "More"),
        Binding("delete,backspace", "reset", "As usual"),
        Binding("ctrl+r", "renew", "Load again"),
    ]
    AUTO_FOCUS = "#settings-list"

    def compose(self) -> ComposeResult:
        """Names of the pages, the rows, the help, what is pending, the keys."""
        again = self._draw
        app = self.chat_app
        sections = (section for section in Section if section.value)
        pages = [OptionsPage(app, again, section) for section in sections]
        self._pages: list[Page] = [*pages, KeysPage(app, again), FolderPage(app, again)]
        self._seen: set[Page] = set()
        with Vertical(id="settings"):
            yield Tabs(*(Tab(page.title, id=f"page-{i}") for i, page in enumerate(self._pages)), id="pages")
            with Horizontal(id="settings-body"):
                yield OptionList(id="settings-list", compact=True)
                with VerticalScroll(id="settings-help", can_focus=False):
                    yield Static(id="settings-help-text", markup=False)
            yield Static(id="settings-pending", markup=False)
            yield Static(id="settings-keys", markup=False)
        yield TinyNotice()

    @property
    def _page(self) -> Page:
        active = self.query_one(Tabs).active
        return self._pages[int(active.removeprefix("page-") or 0)] if active else self._pages[0]

    @property
    def _row(self) -> Row | None:
        index = self.query_one(OptionList).highlighted
        rows = self._page.rows()
        return rows[index] if index is not None and index < len(rows) else None

    # Drawing

    @on(Tabs.TabActivated)
    def _turned(self) -> None:
        page = self._page
        if page not in self._seen:
            self._seen.add(page)
            page.begin()
        self.query_one(OptionList).highlighted = None
        self._draw()
        self.query_one(OptionList).highlighted = 0
        self.query_one(OptionList).focus()

    def _draw(self) -> None:
        """The page's rows as they are now; the mark stays where it is."""
        if not self.is_mounted:
            return
        names, rows = self.query_one(OptionList), self._page.rows()
        mark, top = names.highlighted, names.scroll_y
        width = max(len(row.title) for row in rows)
        names.clear_options()
        names.add_options([Option(_line(row, width)) for row in rows])
        names.highlighted = mark
        names.scroll_to(y=top, animate=False, immediate=True)
        self.query_one("#settings-keys", Static).update(f"{self._page.keys} · Tab page · Esc")
        self._explain()

    @on(OptionList.OptionHighlighted)
    def _explain(self) -> None:
        row = self._row
        text = Text(f"{row.title}\n", "bold").append(row.help, "not bold") if row else Text()
        self.query_one("#settings-help-text", Static).update(text)
        offer = _OFFERS.get(self.chat_app.pending(), "")
        pending = self.query_one("#settings-pending", Static)
        pending.display = bool(offer)
        pending.update(offer)

    # Changing

    @on(OptionList.OptionSelected)
    def _entered(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if row := self._row:
            self._page.enter(row.name)

    def action_step(self, direction: int) -> None:
        """The marked row's next value."""
        if row := self._row:
            self._page.step(row.name, direction)

    def action_reset(self) -> None:
        """The marked row as usual."""
        if row := self._row:
            self._page.reset(row.name)

    def action_page(self, direction: int) -> None:
        """Another page."""
        at = self._pages.index(self._page)
        self.query_one(Tabs).active = f"page-{(at + direction) % len(self._pages)}"

    def action_renew(self) -> None:
        """Let what is pending count."""
        if self.chat_app.pending() is not Applies.NOW:
            self.run_worker(self._renew(), group="engine-pause", exclusive=True)

    async def _renew(self) -> None:
        try:
            await self.chat_app.renew()
        except DecdecError as error:
            self.notify(error.sentence, severity="warning", markup=False)
        self._draw()

    def action_leave(self) -> None:
        """Close; what is pending is offered once more."""
        if self.chat_app.pending() is Applies.NOW or not self.chat_app.session.model:
            self.dismiss()
            return
        text = "Some of what was changed needs the model to be loaded again."
        self.app.push_screen(ChoiceScreen("Load the model again?", text, (NOW, LATER)), partial(self._leave))

    async def _leave(self, how: str | None) -> None:
        if how:
            await self._renew()
        self.dismiss()


def _line(row: Row, width: int) -> Text:
    mark = OWN if row.own else "  "
    line = Text(f"{mark}{row.title:<{width}}  ", no_wrap=True, overflow="ellipsis")
    return line.append(row.value, "bold")
