"""What a conversation says, beside the list of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from app.conversation import Conversation, Turn
from app.history.titles import heading
from app.history.words import Phrase, spans
from app.text import neutralise, one_line
from app.thinking import visible

# A look, not a reading: so many turns, and so many characters of each text.
TURNS, CHARACTERS = 12, 1500


class ConversationPreview(VerticalScroll, can_focus=False):
    """Shows the path of a conversation as plain text, from the first turn on that has the words."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"preview--title", "preview--question", "preview--hit"}

    def compose(self) -> ComposeResult:
        """One text."""
        yield Static(id="preview-text", markup=False)

    def show(self, conversation: Conversation | None, wanted: tuple[Phrase, ...]) -> None:
        """Draw a conversation, or nothing."""
        parts = self._parts(conversation, wanted) if conversation else ()
        self.query_one("#preview-text", Static).update(Text("\n\n").join(parts))
        self.scroll_home(animate=False)

    def _parts(self, conversation: Conversation, wanted: tuple[Phrase, ...]) -> Iterator[Text]:
        yield Text(one_line(heading(conversation)), self._style("title"))
        for turn in _from_hit(conversation.turns, wanted)[:TURNS]:
            yield self._text(turn.question, "question", wanted)
            if answer := visible(turn.answer).strip():
                yield self._text(answer, "", wanted)

    def _text(self, source: str, part: str, wanted: tuple[Phrase, ...]) -> Text:
        shown = neutralise(source[:CHARACTERS].strip()) + "…" * (len(source) > CHARACTERS)
        text = Text(shown, self._style(part) if part else "")
        for start, end in spans(shown, wanted):
            text.stylize(self._style("hit"), start, end)
        return text

    def _style(self, part: str) -> str:
        return str(self.get_component_rich_style(f"preview--{part}", partial=True))


def _from_hit(turns: list[Turn], wanted: tuple[Phrase, ...]) -> list[Turn]:
    for place, turn in enumerate(turns):
        if wanted and all(spans(f"{turn.question}\n{turn.answer}", (phrase,)) for phrase in wanted):
            return turns[place:]
    return turns
