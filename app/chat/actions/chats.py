"""Conversations: a new one, finding old ones, titles, files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.chat.actions.base import ChatActionsBase
from app.chat.screens.history import TITLE_HINT, HistoryScreen
from app.chat.screens.line import LineScreen
from app.conversation import Conversation
from app.history import History, files
from app.history.listing import Entry
from app.history.titles import fit, heading
from app.text import one_line
from runtime.errors import DecdecError

EXPORT_HINT = ".md is to be read, .json holds every variant and can be imported · nothing is overwritten"
IMPORT_HINT = "a .json file that was exported here, or by another decdec-chat"
# Titles in notes stay short.
_NOTE_CELLS = 40
_NOTHING = Entry("", "", 0.0, 0, "")

T = TypeVar("T")


class ChatActions(ChatActionsBase):
    """Actions of the group "Conversations", and the desk that the history's screen works on."""

    def action_new_chat(self) -> None:
        """Start over."""
        self.send(self.session.new_chat())
        self.show_conversation()
        self.prompt.focus()

    def action_history(self, words: str = "") -> None:
        """Show all conversations, or those that hold some words."""
        self.app.push_screen(HistoryScreen(self, words))

    def action_rename(self, title: str = "") -> None:
        """Give this conversation a title, or ask for one."""
        if title:
            self._retitle(title)
        else:
            self.app.push_screen(LineScreen("Title", self._title(), TITLE_HINT), self._retitle)

    def _title(self) -> str:
        conversation = self.session.conversation
        return heading(conversation) if conversation.turns or conversation.title else ""

    def _retitle(self, title: str | None) -> None:
        """None and the title that is seen anyway change nothing."""
        if title is not None and title != self._title():
            self.session.retitle(one_line(title))
            self.tell(f"This conversation is called {_quoted(heading(self.session.conversation))}.")

    def action_export(self, file: str = "") -> None:
        """Write this conversation into a file, or ask for one."""
        self._export(self.session.conversation, file)

    def _export(self, conversation: Conversation, file: str) -> None:
        if not conversation.turns:
            self.warn("There is nothing to export yet.")
        elif file:
            self._write(conversation, file)
        else:
            ask = LineScreen("Export", _whole(files.proposed(conversation)), EXPORT_HINT)
            self.app.push_screen(ask, lambda answer: self._write(conversation, answer or ""))

    def _write(self, conversation: Conversation, file: str) -> None:
        if file and (path := self._tried(lambda: files.export(conversation, file))):
            self.tell(f"Saved as {one_line(os.path.abspath(path))}.")

    def action_import_chat(self, file: str = "") -> None:
        """Read conversations from a file, or ask for one."""
        if file:
            self.run_worker(self._import(file), group="import")
        else:
            self.app.push_screen(LineScreen("Import", "", IMPORT_HINT), self._import_named)

    def _import_named(self, file: str | None) -> None:
        if file:
            self.action_import_chat(file)

    async def _import(self, file: str) -> None:
        path = self.chat_app.history.database.path
        try:
            taken = await asyncio.to_thread(_taken_in, path, file)
        except DecdecError as error:
            self.warn(error.sentence)
            return
        first = taken[0]
        if len(taken) > 1:
            self.tell(f"{len(taken)} conversations were imported. F3 shows them.")
        elif self.session.busy:
            self.tell(f"{_quoted(heading(first))} was imported. F3 shows it.")
        elif self.open_chat(first.id):
            self.tell(f"{_quoted(heading(first))} was imported.")

    # The desk

    def open_chat(self, id: str) -> bool:
        """Go on with a conversation of the history; whether it was there."""
        if id == self.session.conversation.id:
            return True
        conversation = self._tried(lambda: self.chat_app.history.load(id))
        if conversation is None:
            return False
        self.send(self.session.open(conversation))
        self.show_conversation()
        self.prompt.focus()
        return True

    def rename_chat(self, id: str, title: str) -> None:
        """Give a conversation a title."""
        if id == self.session.conversation.id:
            self.session.retitle(one_line(title))
        else:
            self._did(lambda: self.chat_app.history.rename(id, one_line(title)))

    def delete_chat(self, id: str, title: str) -> None:
        """Take a conversation out of the list; the one in the chat makes room for a new one."""
        if id == self.session.conversation.id:
            self.action_new_chat()
        if self._did(lambda: self.chat_app.history.delete(id)):
            self.tell(f"{_quoted(title)} is deleted. u brings it back.")

    def undelete_chat(self) -> str:
        """Bring back what was deleted last; its id, empty where there was nothing."""
        found = self._tried(lambda: self.chat_app.history.undelete() or _NOTHING)
        if found is _NOTHING:
            self.tell("Nothing that was deleted is left to bring back.")
        elif found is not None:
            self.tell(f"{_quoted(found.title)} is back.")
        return found.id if found else ""

    def export_chat(self, id: str) -> None:
        """Ask for a file and write a conversation there."""
        present = self.session.conversation
        conversation = present if id == present.id else self._tried(lambda: self.chat_app.history.load(id))
        if conversation is not None:
            self._export(conversation, "")

    def _tried(self, work: Callable[[], T]) -> T | None:
        """What the work gives; None and a note where the file refuses."""
        try:
            return work()
        except DecdecError as error:
            self.warn(error.sentence)
            return None

    def _did(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except DecdecError as error:
            self.warn(error.sentence)
            return False
        return True


def _whole(path: Path) -> str:
    """The full path, unless a folder's name cannot be shown as it is."""
    whole = os.path.abspath(path)
    return whole if one_line(whole) == whole else str(path)


def _quoted(title: str) -> str:
    return f"“{fit(one_line(title), _NOTE_CELLS)}”"


def _taken_in(path: Path, file: str) -> list[Conversation]:
    """Read a file into the history, over a connection of this thread's own."""
    conversations = files.read(file)
    history = History(path)
    try:
        taken = history.add_all(conversations)
        history.index()
    finally:
        history.close()
    return taken
