"""Kinds of values a person can set: how they are read from what is typed, shown, and stepped through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app import format


@dataclass(frozen=True, slots=True)
class Number:
    """A number within `low` and `high`. `unset`: the words for `nothing`, where that is possible.

    `start`: where a step from nothing leads.
    """

    low: float
    high: float
    step: float
    start: float
    whole: bool = False
    unit: str = ""
    unset: str = ""
    nothing: float | None = None

    def shown(self, value: Any) -> str:
        """As a person reads it."""
        if self.unset and value == self.nothing:
            return self.unset
        text = format.number(value) if self.whole else f"{value:g}"
        return f"{text} {self.unit}".rstrip()

    def typed(self, value: Any) -> str:
        """As a person would type it; empty where nothing is set."""
        return "" if self.unset and value == self.nothing else f"{value:d}" if self.whole else f"{value:g}"

    def parse(self, text: str) -> Any:
        """What is typed as a value; ValueError says what is possible."""
        text = text.strip()
        if self.unset and text in ("", self.unset):
            return self.nothing
        try:
            bare = text.replace(" ", "").removesuffix(self.unit)
            value = int(bare.replace(",", "")) if self.whole else float(bare.replace(",", "."))
        except ValueError:
            raise ValueError(f"{'A whole number' if self.whole else 'A number'} is needed") from None
        if not self.low <= value <= self.high:
            raise ValueError(f"It must be between {self.low:g} and {self.high:g}")
        return value

    def stepped(self, value: Any, direction: int) -> Any:
        """The next value, and below the lowest nothing."""
        if self.unset and value == self.nothing:
            return self._made(self.start)
        moved = round(value + direction * self.step, 6)
        if moved < self.low and self.unset:
            return self.nothing
        return self._made(min(max(moved, self.low), self.high))

    def _made(self, value: float) -> float | int:
        return int(value) if self.whole else float(value)


@dataclass(frozen=True, slots=True)
class Pick:
    """One of several values, each with the words for it."""

    choices: tuple[tuple[Any, str], ...]

    def shown(self, value: Any) -> str:
        """As a person reads it."""
        return next((words for choice, words in self.choices if choice == value), str(value))

    def stepped(self, value: Any, direction: int) -> Any:
        """The neighbour, around the ends."""
        values = [choice for choice, _ in self.choices]
        at = values.index(value) if value in values else min(-direction, 0)
        return values[(at + direction) % len(values)]


@dataclass(frozen=True, slots=True)
class Words:
    """Free text. `unset`: the words for none."""

    unset: str

    def shown(self, value: Any) -> str:
        """As a person reads it."""
        return value or self.unset

    def typed(self, value: Any) -> str:
        """As a person would type it."""
        return str(value)

    def parse(self, text: str) -> str:
        """What is typed, without blanks around it."""
        return "" if text.strip() == self.unset else text.strip()


Kind = Number | Pick | Words


def pick(values: Sequence[str]) -> Pick:
    """Values that are their own words."""
    return Pick(tuple((value, value) for value in values))
