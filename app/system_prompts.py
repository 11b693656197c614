"""Named system prompts, and the drafts of one visit to them."""

from __future__ import annotations

from collections.abc import Mapping

from app.text import one_line

MAX_NAME = 60


class PromptDrafts:
    """What an editor of system prompts holds: one text a name, "" being the one of this conversation.

    Going to another name keeps what was typed. `names` are the library's, which every change gives anew.
    """

    def __init__(self, present: str, library: Mapping[str, str]) -> None:
        self.library = dict(library)
        self.chosen = ""
        self._drafts = {"": present}
        self._deleted: tuple[str, str] | None = None

    @property
    def names(self) -> list[str]:
        """Names of the library in order."""
        return sorted(self.library, key=str.casefold)

    @property
    def text(self) -> str:
        """What is being edited."""
        return self._drafts.get(self.chosen, self.library.get(self.chosen, ""))

    def typed(self, text: str) -> None:
        """The editor's text changed."""
        self._drafts[self.chosen] = text

    def choose(self, name: str) -> None:
        """Go to another text."""
        if not name or name in self.library:
            self.chosen = name

    @property
    def changed(self) -> bool:
        """Whether the chosen name's text differs from what is kept under it."""
        return bool(self.chosen) and self.text != self.library[self.chosen]

    def save(self, name: str) -> str:
        """Keep the text under a name; a sentence when that cannot be, else empty."""
        name = one_line(name)
        if not name:
            return "A name is needed."
        if len(name) > MAX_NAME:
            return f"A name has at most {MAX_NAME} characters."
        if not self.text.strip():
            return "There is no text to keep."
        text = self.text.strip()
        self.library = {**self.library, name: text}
        for done in filter(None, (self.chosen, name)):
            self._drafts.pop(done, None)
        self.chosen = name
        return ""

    def delete(self) -> str:
        """Forget the chosen name, or bring back the one that was forgotten last; a sentence about it."""
        if not self.chosen and self._deleted:
            name, text = self._deleted
            self.library, self.chosen, self._deleted = {**self.library, name: text}, name, None
            return f"{name} is back."
        if not self.chosen:
            return "This conversation's own prompt has no name to delete; an empty text is none."
        name, self.chosen = self.chosen, ""
        self._deleted = name, self._drafts.pop(name, self.library[name])
        self.library = {other: text for other, text in self.library.items() if other != name}
        return f"{name} is deleted. The same key again brings it back."
