"""The models: here, on their way, in the catalogue and on a hub; and what can be done with each."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from app.background import MACHINE
from app.chat.screens.model_actions import ModelActions
from app.chat.screens.model_search import ModelSearch
from app.chat.widgets.fact_table import FactTable
from app.chat.widgets.library_list import LibraryList
from app.chat.widgets.tiny_notice import TinyNotice
from app.library.facts import facts
from app.library.hints import heading, hint
from app.library.pulls import Pull
from app.library.rows import LeftoverRow, OfferRow, PullRow, ReadyRow, Row, Shelf, offers_of, sections
from app.surroundings import room
from app.text import one_line
from runtime import machine
from runtime.errors import DecdecError
from runtime.protocol.events import Event, Failed, Loaded
from runtime.sources.fit import Room

PLACEHOLDER = "type to filter · Enter searches the hub, or imports a folder or .gguf file"
DRAW_S = 0.2
# Which kinds of rows an action is for.
FITTING: dict[str, tuple[type, ...]] = {
    "verify": (ReadyRow,),
    "delete": (ReadyRow, LeftoverRow, PullRow),
    "pause": (PullRow,),
    "cancel": (PullRow,),
}


class ModelsScreen(ModelSearch):
    """Puts search, list and facts together. `words`: what to begin the search with."""

    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012
        *(ModelActions.HORIZONTAL_BREAKPOINTS or []),
        (144, "-roomy"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f2", "leave", "Back", priority=True, key_display="Esc"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("down", "into_list", "Into the list", show=False),
        Binding("i", "details", "Details"),
        Binding("v", "verify", "Verify"),
        Binding("p", "pause", "Pause / go on"),
        Binding("x", "cancel", "Cancel"),
        Binding("delete", "delete", "Delete", key_display="Del"),
    ]
    AUTO_FOCUS = "#library"

    def __init__(self, words: str = "") -> None:
        super().__init__(words)
        self._shelf = Shelf()
        self._drawing: Timer | None = None
        # The kind of row that the keys below are shown for, and whether it is in use.
        self._live: tuple[type, bool] = (ModelsScreen, False)

    def compose(self) -> ComposeResult:
        """Title, search, list and facts side by side, a note, keys."""
        with Vertical(id="models"):
            yield Static(id="models-title", markup=False)
            yield Input(self.view.words, placeholder=PLACEHOLDER, id="models-search", compact=True)
            with Horizontal(id="models-middle"):
                yield LibraryList(id="library")
                yield FactTable(id="models-facts")
            yield Static(id="models-note", markup=False)
            yield Footer(compact=True, show_command_palette=False)
        yield TinyNotice()

    def on_mount(self) -> None:
        """Follow the pulls."""
        self.chat_app.pulls_changed.subscribe(self, self._pulls_changed)

    def on_resize(self) -> None:
        """There may be room for the facts now."""
        self.call_after_refresh(self._draw_marked)

    def on_screen_resume(self) -> None:
        """Read the disk: something may have been prepared, tuned or deleted meanwhile."""
        self.reload()

    def engine_event(self, event: Event) -> None:
        """Another model may be loaded now."""
        if isinstance(event, Loaded | Failed):
            self.draw()

    # Drawing

    def reload(self) -> None:
        """Look at the disk again."""
        try:
            self._shelf = Shelf.read(self.chat_app.catalogue, self._room)
            self.chat_app.background.forget_ready([record.name for record in self._shelf.records])
        except DecdecError as error:
            self._shelf = Shelf(offers=offers_of(self.chat_app.catalogue, room=self._room))
            self.note = one_line(error.sentence)
        self.draw()

    def show_pull(self, name: str) -> None:
        """Draw the list and mark a pull."""
        self.reload()
        self.query_one(LibraryList).mark(f"pull:{name}")

    def draw(self) -> None:
        """Draw the list by what is known now; nothing once the screen was left."""
        if self not in self.app.screen_stack:
            return
        self._draw_list()
        self._show_text("#models-title", heading(self._shelf))
        self._draw_marked()

    def _draw_list(self) -> None:
        view = replace(self.view, loaded=self._loaded)
        self.query_one(LibraryList).show(sections(self._shelf, self.chat_app.background.pulls, view))

    def ask_for(self, name: str, source: str) -> None:
        """Mark a model that is not here, and ask how to fetch it; one on its way only is marked."""
        shown = self.query_one(LibraryList)
        if not shown.mark(f"pull:{name}"):
            shown.mark(f"catalogue:{name}")
            self.ask_to_fetch(name, source, "")

    def focus_list(self, key: str = "") -> None:
        """Put the keyboard into the list, and the mark on a row."""
        self.query_one(LibraryList).mark(key)
        self.query_one(LibraryList).focus()

    @on(LibraryList.Marked)
    def _draw_marked(self) -> None:
        if self not in self.app.screen_stack:
            return
        row = self.row
        self._show_text("#models-note", self.note or hint(row, self.view.words))
        if self.query_one(FactTable).display:
            self.query_one(FactTable).show(facts(row) if row else ())
        live = (type(row), isinstance(row, ReadyRow) and self.in_use(row.name))
        if self._live != live:
            self._live = live
            self.refresh_bindings()

    def _show_text(self, selector: str, text: str) -> None:
        """A line that is laid out anew only when it says something else."""
        line = self.query_one(selector, Static)
        if line.content != text:
            line.update(text)

    def _pulls_changed(self, ended: Pull | None) -> None:
        """Figures come often and are drawn at an easy pace; the disk is read when a pull has ended."""
        if ended is not None:
            self.reload()
        elif self._drawing is None:
            self._drawing = self.set_timer(DRAW_S, self._draw_pulls)

    def _draw_pulls(self) -> None:
        self._drawing = None
        if self not in self.app.screen_stack:
            return
        self._draw_list()
        if isinstance(self.row, PullRow):
            self._draw_marked()

    @property
    def _room(self) -> Room | None:
        """For a model on this machine, as the set-up has measured it, else as far as the system tells."""
        return room(self.chat_app.background.known.get(MACHINE) or machine.glance())

    @property
    def _loaded(self) -> str:
        loaded = self.chat_app.session.loaded
        return loaded.model if loaded else ""

    # What is marked

    @property
    def row(self) -> Row | None:
        """The marked row; an offer that is here already stands for the model it is."""
        listed = self.query(LibraryList)
        row = listed.first().marked if listed else None
        if isinstance(row, OfferRow) and row.ready and (record := self._shelf.find(row.name)):
            return ReadyRow(record, record.name in self._shelf.tuned, record.name == self._loaded)
        return row

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are live where they fit what is marked; what is in use cannot be deleted, as a line says."""
        if action not in FITTING or not self.is_mounted:
            return True
        row = self.row
        kept = action == "delete" and isinstance(row, ReadyRow) and self.in_use(row.name)
        return isinstance(row, FITTING[action]) and not kept

    @on(LibraryList.Chosen)
    def _chosen(self) -> None:
        if row := self.row:
            self.choose(row)

    def action_details(self) -> None:
        """Everything about the marked model."""
        if row := self.row:
            self.look(row)

    def action_verify(self) -> None:
        """Compare its files and weights."""
        if row := self.row:
            self.look(row, verify=True)

    def action_pause(self) -> None:
        """Let a pull rest or go on."""
        if isinstance(row := self.row, PullRow):
            self.pause_or_go_on(row.pull)

    def action_cancel(self) -> None:
        """Forget a pull."""
        if isinstance(row := self.row, PullRow):
            self.ask_to_cancel(row.pull)

    def action_delete(self) -> None:
        """Delete what is marked."""
        if row := self.row:
            self.ask_to_delete(row)

    def action_search(self) -> None:
        """Into the search."""
        self.query_one(Input).focus()

    def action_into_list(self) -> None:
        """From the search to what it left in the list."""
        self.focus_list()

    def action_leave(self) -> None:
        """Out of the search, which is emptied, then back to the chat."""
        search = self.query_one(Input)
        if search.has_focus:
            search.value = ""
            self.focus_list()
        else:
            self.dismiss()
