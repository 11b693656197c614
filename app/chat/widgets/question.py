"""What the user asked."""

from __future__ import annotations

from textual.widgets import Static

from app.text import neutralise


class QuestionView(Static):
    """A user's message, shown as it was typed."""

    def __init__(self, text: str) -> None:
        super().__init__(neutralise(text), markup=False, classes="question")
