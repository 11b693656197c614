"""Reasoning that servers send apart, joined with the answer as one text: `<think>…</think>` before it."""

from __future__ import annotations

from enum import Enum

OPENING, CLOSING = "<think>", "</think>"


class _Stage(Enum):
    BEFORE = "nothing was said yet"
    RESUMED = "the answer that goes on stopped in its thinking"
    THINKING = "reasoning came last"
    SAYING = "the answer itself"


class ThinkingJoiner:
    """Takes what comes, gives the text to show. Thinking has one place: reasoning after the answer began
    is left out.
    """

    def __init__(self, continued: str = "") -> None:
        """`continued`: what an answer that goes on holds already."""
        begun = continued.lstrip()
        thinks = begun.startswith(OPENING) and CLOSING not in begun
        self._stage = _Stage.RESUMED if thinks else _Stage.SAYING if begun else _Stage.BEFORE

    def push(self, reasoning: str, text: str) -> str:
        """Text to show for one piece of each."""
        return self._reasoned(reasoning) + self._said(text)

    def finish(self) -> str:
        """What closes thinking that nothing followed."""
        return f"\n{CLOSING}\n" if self._stage is _Stage.THINKING else ""

    def _reasoned(self, reasoning: str) -> str:
        if not reasoning or self._stage is _Stage.SAYING:
            return ""
        opening = f"{OPENING}\n" if self._stage is _Stage.BEFORE else ""
        self._stage = _Stage.THINKING
        return opening + reasoning

    def _said(self, text: str) -> str:
        # Blanks before the reasoning are no answer yet.
        if not text or (self._stage is _Stage.BEFORE and text.isspace()):
            return text
        if self._stage is _Stage.THINKING:
            self._stage = _Stage.SAYING
            return f"\n{CLOSING}\n\n{text}"
        if self._stage is _Stage.BEFORE:
            self._stage = _Stage.SAYING
        return text
