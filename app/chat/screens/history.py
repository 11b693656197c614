"""Every conversation there was: looked for, opened, named, deleted, written to files."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Key
from textual.timer import Timer
from textual.widgets import Footer, Input, OptionList, Static

from app import format
from app.chat.desk import Desk
from app.chat.screens.base import WIDTHS, EngineScreen
from app.chat.screens.line import LineScreen
from app.chat.widgets.conversation_line import Found
from app.chat.widgets.conversation_list import ConversationList
from app.chat.widgets.conversation_preview import ConversationPreview
from app.chat.widgets.line_input import LineInput
from app.chat.widgets.tiny_notice import TinyNotice
from app.history.listing import Entry, Page
from app.history.words import phrases
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.events import Done, Event, Failed

# Words are looked for when nobody has typed for so long; a preview follows the highlight as slowly.
TYPING_S = 0.12
# So many are shown at first, and so many times more whenever somebody goes to the end.
FIRST, MORE = 100, 4

TITLE_HINT = "Enter keeps it · empty: the first words of the first question · Esc leaves it as it was"


class HistoryScreen(EngineScreen):
    """The list, a line to search in all texts, and where there is room a look at what is highlighted."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [*WIDTHS, (120, "-roomy")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash,ctrl+f", "search", "Search"),
        Binding("escape", "back", "Back", priority=True),
        Binding("r,ctrl+t", "rename", "Rename"),
        Binding("d,delete,shift+delete", "delete", "Delete"),
        Binding("u,alt+z", "undo", "Undo"),
        Binding("x,ctrl+s", "export", "Export"),
        Binding("n,ctrl+n", "new", "New"),
        Binding("f3", "leave", "Back", show=False, priority=True),
        Binding("down", "into_list('cursor_down')", "List", priority=True),
        Binding("pagedown", "into_list('page_down')", "List", show=False),
    ]
    AUTO_FOCUS = "#history-search"

    def __init__(self, desk: Desk, words: str = "") -> None:
        super().__init__()
        self._desk, self._words = desk, words
        self._limit = FIRST
        self._typing: Timer | None = None
        self._looking: Timer | None = None

    def compose(self) -> ComposeResult:
        """How many, the search, the list with its preview, keys."""
        with Vertical(id="history"):
            with Horizontal(id="history-head"):
                yield Static("Conversations", id="history-title")
                yield Static(id="history-count", markup=False)
            yield LineInput(
                self._words,
                placeholder="Type to search every title, question and answer",
                id="history-search",
            )
            yield Static(id="history-empty", markup=False)
            with Horizontal(id="history-body"):
                yield ConversationList(id="history-list")
                yield ConversationPreview(id="history-preview")
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Show the newest, or what was asked for."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._fill())
        self.set_focus(self._search)
        self._fill()

    def on_key(self, event: Key) -> None:
        """Letters typed before the search had the keyboard are its own, and no commands."""
        if self._search.has_focus and event.is_printable and event.character:
            self._search.insert_text_at_cursor(event.character)
            event.prevent_default()
            event.stop()

    def engine_event(self, event: Event) -> None:
        """An answer that ended has another time and length."""
        if isinstance(event, Done | Failed):
            self._fill()

    # What is shown

    @property
    def _list(self) -> ConversationList:
        return self.query_one(ConversationList)

    @property
    def _search(self) -> Input:
        return self.query_one("#history-search", Input)

    def _fill(self, choose: str = "") -> None:
        words = self._search.value
        page, trouble = self._page(words)
        found = Found(phrases(words), self.chat_app.session.conversation.id, time.time())
        self._list.show(page, found, choose)
        self.query_one("#history-count", Static).update(_count(page, bool(words.strip())))
        self.query_one("#history-empty", Static).update(trouble or _nothing(words))
        self.query_one("#history-empty").display = not page.entries
        self.query_one("#history-body").display = bool(page.entries)
        if page.entries and not self._search.has_focus:
            self._list.focus()
        self._look_soon()

    def _page(self, words: str) -> tuple[Page, str]:
        try:
            return self.chat_app.history.page(words, self._limit), ""
        except DecdecError as error:
            return Page(), error.sentence

    @on(Input.Changed)
    def _typed(self) -> None:
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(TYPING_S, self._search_now)

    def _search_now(self) -> None:
        self._limit = FIRST
        self._fill()

    @on(ConversationList.MoreWanted)
    def _more(self) -> None:
        self._limit *= MORE
        self._fill()

    @on(OptionList.OptionHighlighted)
    def _look_soon(self) -> None:
        if self._looking is not None:
            self._looking.stop()
        self._looking = self.set_timer(TYPING_S, self._look)

    def _look(self) -> None:
        preview = self.query_one(ConversationPreview)
        if not preview.display or not self.has_class("-roomy"):
            return
        conversation = None
        if entry := self._list.chosen:
            try:
                conversation = self.chat_app.history.load(entry.id)
            except DecdecError as error:
                self.notify(error.sentence, severity="warning", markup=False)
        preview.show(conversation, phrases(self._search.value))

    # What is done

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_open()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        # What was typed a moment ago counts too.
        self._search_now()
        self.action_open()

    def action_open(self) -> None:
        """Go on with the highlighted conversation."""
        entry = self._list.chosen
        if entry and self._desk.open_chat(entry.id):
            self.action_leave()

    def action_rename(self) -> None:
        """Ask for another title."""
        if entry := self._list.chosen:
            ask = LineScreen("Title", entry.title, TITLE_HINT)
            self.app.push_screen(ask, lambda title: self._renamed(entry, title))

    def _renamed(self, entry: Entry, title: str | None) -> None:
        if title is not None and title != entry.title:
            self._desk.rename_chat(entry.id, title)
            self._fill(entry.id)

    def action_delete(self) -> None:
        """Take the highlighted conversation out; it can come back."""
        if entry := self._list.chosen:
            self._desk.delete_chat(entry.id, entry.title)
            self._fill()

    def action_undo(self) -> None:
        """Bring back what was deleted last."""
        if id := self._desk.undelete_chat():
            self._fill(id)

    def action_export(self) -> None:
        """Write the highlighted conversation into a file."""
        if entry := self._list.chosen:
            self._desk.export_chat(entry.id)

    def action_new(self) -> None:
        """Begin another conversation."""
        self._desk.action_new_chat()
        self.action_leave()

    # Moving

    def action_search(self) -> None:
        """To the line for words."""
        self._search.focus()

    def action_into_list(self, name: str) -> None:
        """Out of the search, and on in the list."""
        self._list.focus()
        getattr(self._list, f"action_{name}")()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What leads from the search to the list and back is shown only where it does."""
        searching = isinstance(self.focused, Input)
        return searching is (action == "into_list") if action in ("search", "into_list") else True

    def action_back(self) -> None:
        """Out of the search, then out of the screen."""
        if self._search.value:
            self._search.value = ""
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Back to the chat."""
        self.dismiss(None)


def _count(page: Page, searched: bool) -> str:
    return f"{format.number(page.total)} found" if searched else format.number(page.total) * bool(page.total)


def _nothing(words: str) -> str:
    if words.strip():
        return (
            f"Nothing holds {one_line(words)}. Beginnings of words are enough, case and accents do not count."
        )
    return "No conversations yet. They are kept from the first question on."
