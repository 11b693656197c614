"""What one rendering of a chat template may make: bounded, because the template came from outside."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import jinja2
from jinja2.runtime import Namespace

# Of any single text, and of what a filter or a comparison may walk over; no context holds as much.
MAX_CHARACTERS = 8 << 20
MAX_MADE_BYTES = 384 << 20
# Longer whole numbers are no count of anything; each product of two is as long as both.
MAX_INT_BITS = 512
_NODE, _PART = 64, 64
# A character or a short piece of a text, as a text of its own in a list.
PIECE = 88
_LEAVES = (str, bytes, int, float, bool, type(None))
_BRANCHES: tuple[type[Any], ...] = (
    list,
    tuple,
    dict,
    range,
    set,
    frozenset,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)


class Budget:
    """Counts what one rendering makes. All refusals are TemplateRuntimeError.

    The weight of a value is what writing it down as text would take, a part that stands in it twice counted
    twice: Python's own conversions and comparisons do so, in one step that nothing can interrupt.
    """

    def __init__(self, given: Any = ()) -> None:
        """`given`: values from outside the template, which are not weighed again."""
        self._made = 0
        self._known = {id(value): weight for value, weight in _branches(given)}
        self._given = given

    def weigh(self, value: Any) -> int:
        """The weight of a value; refused where it is too large."""
        if isinstance(value, _LEAVES):
            return _fitting(_NODE + _length(value))
        total, waiting = 0, [value]
        while waiting:
            each = waiting.pop()
            known = self._known.get(id(each))
            if known is not None:
                total = _fitting(total + known)
                continue
            total = _fitting(total + _NODE + _length(each))
            waiting += _inner(each)
        return total

    def made(self, value: Any) -> Any:
        """The value itself, counted as new memory."""
        size = 0
        if isinstance(value, str):
            _fitting(len(value))
            size = sys.getsizeof(value)
        elif isinstance(value, list | tuple | dict):
            size = sys.getsizeof(value) + _PART * len(value)
        elif isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
            refuse("a number is too large")
        self.spend(size)
        return value

    def spend(self, size: int) -> None:
        """Count bytes that are made."""
        self._made += size
        self.room(0)

    def room(self, size: int) -> None:
        """Refuses what one step is about to make, where it would be too many bytes."""
        if self._made + size > MAX_MADE_BYTES:
            refuse(f"it makes more than {MAX_MADE_BYTES >> 20} MB of text")

    def settled(self, value: Any) -> Any:
        """A list in the place of what can be walked over once only; weighed."""
        if isinstance(value, Iterator):
            value = list(itertools.islice(value, MAX_CHARACTERS // _NODE))
            self.made(value)
        self.weigh(value)
        return value


def refuse(reason: str) -> None:
    """End the rendering with a reason."""
    raise jinja2.TemplateRuntimeError(reason)


def _fitting(size: int) -> int:
    if size > MAX_CHARACTERS:
        refuse(f"a text or a list has more than {MAX_CHARACTERS >> 20} million characters")
    return size


def _length(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Namespace):
        # It may hold itself, and others many times over.
        refuse("a namespace is used as a value")
    return value.bit_length() // 3 if isinstance(value, int) else 0


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return itertools.chain(value.keys(), value.values())
    return iter(value) if isinstance(value, _BRANCHES) else iter(())


def _branches(value: Any) -> Iterator[tuple[Any, int]]:
    """Every container of a value that is a tree of few levels, with its weight."""
    if not isinstance(value, _BRANCHES):
        return
    weight = _NODE
    for each in _inner(value):
        found = [*_branches(each)]
        yield from found
        weight += found[-1][1] if found else _NODE + _length(each)
    yield value, weight
