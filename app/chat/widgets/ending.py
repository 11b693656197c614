"""The line below an answer: facts, and what can be done to it while it is looked at."""

from __future__ import annotations

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from app import facts
from app.conversation import Turn, TurnState

# What can be done to a turn: key while it has the focus, action of `app.actions`, word for it.
TOOLS = (
    ("c", "copy_answer", "copy"),
    ("b", "copy_code", "code"),
    ("e", "edit", "edit"),
    ("r", "regenerate", "retry"),
    ("o", "go_on", "go on"),
    ("t", "think", "thinking"),
    ("left", "older", "‹"),
    ("right", "newer", "›"),
    ("delete", "delete", "delete"),
)
_KEY_NAMES = {"left": "←", "right": "→", "delete": "Del"}


class EndingView(Static):
    """Facts of a turn; with `tools` every word is a button, and its key stands before it with `keys`."""

    class ToolUsed(Message):
        """Something is to be done to this turn: `action` is a name of `app.actions`."""

        def __init__(self, turn: Turn, action: str) -> None:
            super().__init__()
            self.turn, self.action = turn, action

    def __init__(self, turn: Turn, place: tuple[int, int]) -> None:
        super().__init__(classes="answer-ending", markup=False)
        self._turn, self._place = turn, place

    def show(self, *, tools: bool = False, keys: bool = False) -> None:
        """Draw the facts, or dots while the answer is being written."""
        turn = self._turn
        self.set_class(bool(turn.ending) and not turn.open, "-cut")
        self.set_class(turn.state is TurnState.FAILED, "-failed")
        if turn.open:
            self.update("…")
            return
        told = Content(facts.of(turn, self._place))
        self.update(self._with_tools(told, keys) if tools else told)

    def action_tool(self, name: str) -> None:
        """A word was clicked."""
        self.post_message(self.ToolUsed(self._turn, name))

    def _with_tools(self, told: Content, keys: bool) -> Content:
        """Facts and tools, or tools alone where both need more than a line: looking moves nothing."""
        tools = self._tools(keys)
        both = Content("  ").join([told, tools])
        return both if both.cell_length <= self.content_size.width else tools

    def _tools(self, keys: bool) -> Content:
        return Content(" ").join(
            Content.from_markup(f"[@click=tool('{name}')]{self._word(key, word, keys)}[/]")
            for key, name, word in TOOLS
            if self._offers(name)
        )

    def _word(self, key: str, word: str, keys: bool) -> str:
        return f"{_KEY_NAMES.get(key, key)} {word} " if keys else word

    def _offers(self, name: str) -> bool:
        """Whether it would do anything here."""
        match name:
            case "older":
                return self._place[0] > 1
            case "newer":
                return self._place[0] < self._place[1]
            case "go_on":
                return self._turn.cut
            case "copy_code":
                return "```" in self._turn.answer
            case "think":
                return "<think>" in self._turn.answer
        return True
