"""The search of the list of models: filters what is here, asks a hub, takes paths."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from textual import on
from textual.widgets import Input

from app.chat.screens.model_actions import ModelActions
from app.library.rows import View
from app.library.typed import Import, meaning
from app.text import one_line
from runtime.errors import DecdecError
from runtime.protocol.commands import Job
from runtime.protocol.events import Done, Failed
from runtime.sources.hub_search import Found


class ModelSearch(ModelActions):
    """Keeps what is asked of the list. `note`: what became of the last search, or went wrong."""

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self.view = View(words)
        self.note = ""

    def draw(self) -> None:
        """Draw the list by what is known now."""
        raise NotImplementedError

    def focus_list(self, key: str = "") -> None:
        """Put the keyboard into the list, and the mark on a row."""
        raise NotImplementedError

    @on(Input.Changed, "#models-search")
    def _typed(self, event: Input.Changed) -> None:
        self.view = replace(self.view, words=event.value)
        self.note = ""
        self.draw()

    @on(Input.Submitted, "#models-search")
    def _wanted(self, event: Input.Submitted) -> None:
        try:
            wanted = meaning(event.value)
        except DecdecError as error:
            self.say(error.sentence)
            return
        if isinstance(wanted, Import):
            self.ask_to_import(wanted)
        elif wanted is None:
            self.focus_list()
        else:
            self.say(f"Searching the hub for “{one_line(wanted.words)}”…")
            self.run_worker(self._search(wanted.words), group="search", exclusive=True)

    def say(self, text: str) -> None:
        """Show a note until something else is typed."""
        self.note = one_line(text)
        self.draw()

    async def _search(self, words: str) -> None:
        outcome = await self.chat_app.background.run(Job("hub_search", {"words": words}))
        if isinstance(outcome, Failed):
            self.say(DecdecError(outcome.what, outcome.why, outcome.fix).sentence)
            return
        try:
            self._found(outcome)
        except msgspec.ValidationError as error:
            self.say(f"What the hub found could not be read: {error}.")

    def _found(self, outcome: Done) -> None:
        """Show an answer, unless other words were typed meanwhile."""
        found = msgspec.convert(outcome.result, Found)
        self.view = replace(self.view, found=found)
        if found.words != self.view.words.strip():
            return
        more = f"; {found.left_out} more cannot be used here" if found.left_out else ""
        self.say(f"{len(found.models)} on {found.hub} for “{found.words}”{more}.")
        if found.models:
            self.focus_list(f"hub:{found.models[0].repo}")
