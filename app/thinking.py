"""Thinking in an answer: the part between `<think>` and `</think>`, shown apart and never sent back."""

from __future__ import annotations

from dataclasses import dataclass

OPENING, CLOSING = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Parts:
    """An answer in two: what was thought, and what is said. `open`: the thinking has not ended."""

    thinking: str = ""
    text: str = ""
    open: bool = False


def split(answer: str) -> Parts:
    """Thinking stands at the beginning of an answer or nowhere; without an end all of it is thinking."""
    start = answer.lstrip()
    if not start.startswith(OPENING):
        return Parts("", answer)
    thought, mark, text = start.removeprefix(OPENING).partition(CLOSING)
    return Parts(thought.strip(), text.lstrip(), open=not mark)


def visible(answer: str) -> str:
    """What is said, without the thinking."""
    return split(answer).text
