"""Which of a server's models answers from now on."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static

from app.chat.screens.base import LOW_HEIGHTS, EngineScreen
from app.server_models import LIST, ServerModel, headline, matching, offered
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.events import Done, Event, Failed


class ServerModelsScreen(EngineScreen):
    """A list with a line to look for names in. A name that is not listed can be typed whole."""

    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = LOW_HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f2", "leave", "Back", priority=True),
        Binding("down", "move('cursor_down')", show=False),
        Binding("up", "move('cursor_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
    ]
    AUTO_FOCUS = "#server-search"

    def __init__(self) -> None:
        super().__init__()
        self._models: tuple[ServerModel, ...] | None = None
        self._shown: list[ServerModel] = []

    def compose(self) -> ComposeResult:
        """Title, line, list, keys."""
        with Vertical(id="dialog"):
            yield Static(headline(None), id="dialog-title", markup=False)
            yield Input(placeholder="Part of a name", id="server-search", compact=True)
            yield OptionList(id="server-models", compact=True)
            yield Static("Enter chats with it · Esc leaves it as it was", id="dialog-keys", markup=False)

    def on_mount(self) -> None:
        """Ask the server."""
        self.chat_app.send(LIST)

    def engine_event(self, event: Event) -> None:
        """Show what the server offers, or why it does not say."""
        match event:
            case Done(job=LIST.name):
                self._models = offered(event.result)
                self._say(headline(self._models))
                self._fill()
            case Failed(job=LIST.name):
                self._say(DecdecError(event.what, event.why, event.fix).sentence)

    def action_leave(self) -> None:
        """Back to the chat."""
        self.app.pop_screen()

    def action_move(self, how: str) -> None:
        """Move the mark while the line keeps the keyboard."""
        getattr(self.query_one(OptionList), f"action_{how}")()

    def _say(self, text: str) -> None:
        self.query_one("#dialog-title", Static).update(one_line(text))

    @on(Input.Changed)
    def _fill(self) -> None:
        self._shown = matching(self._models or (), self.query_one(Input).value)
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([self._line(model) for model in self._shown])
        names = [model.id for model in self._shown]
        present = self.chat_app.session.model
        options.highlighted = (names.index(present) if present in names else 0) if names else None

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        marked = self.query_one(OptionList).highlighted
        self._take(self._shown[marked].id if marked is not None else event.value.strip())

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(self._shown[event.option_index].id)

    def _take(self, name: str) -> None:
        if not name:
            return
        self.app.pop_screen()
        self.chat_app.send(self.chat_app.session.load(name))

    def _line(self, model: ServerModel) -> Text:
        mark = "● " if model.id == self.chat_app.session.model else "  "
        return Text.assemble(
            (mark, "bold"), one_line(model.id), (f"  {model.facts}", "dim"), no_wrap=True, overflow="ellipsis"
        )
