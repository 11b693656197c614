"""Text in the units that a reader takes for one character: a flag, a family, a letter with its accents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regex import findall
from rich.cells import cell_len

# A word with the blanks behind it stays together where it can.
_WORD = re.compile(r"\S+\s*|\s+")
_TAB = "\t"


def graphemes(text: str) -> list[str]:
    """The extended grapheme clusters of Unicode, in order; nothing is lost."""
    return list(text) if text.isascii() else findall(r"\X", text)


def left_of(text: str, at: int) -> int:
    """Where the grapheme begins that ends at an offset, or holds it."""
    if text.isascii():
        return max(at - 1, 0)
    return max((start for start, _ in _spans(text, _safe(text, at)) if start < at), default=0)


def right_of(text: str, at: int) -> int:
    """Where the grapheme ends that begins at an offset, or holds it."""
    if text.isascii():
        return min(at + 1, len(text))
    return next((end for _, end in _spans(text, _safe(text, at)) if end > at), len(text))


def start_of(text: str, at: int) -> int:
    """The offset itself between two graphemes, the beginning of the one that holds it else."""
    return left_of(text, at + 1) if at < len(text) else len(text)


def at_cell(text: str, cell: int) -> int:
    """The offset of the grapheme that is drawn over a cell; the end of the text behind it. No tabs."""
    for start, end in _spans(text, 0):
        cell -= cell_len(text[start:end])
        if cell < 0:
            return start
    return len(text)


def breaks(text: str, width: int, tab_widths: Sequence[int] = ()) -> list[int]:
    """Offsets at which a line is broken to fit into so many cells: before words, or within too long ones.

    `tab_widths`: cells of every tab in the line. A width of 0 breaks nothing.
    """
    found: list[int] = []
    used, tabs = 0, iter(tab_widths)
    for word in _WORD.finditer(text) if width else ():
        cells = _cells(word[0], tabs)
        size = sum(cells)
        if used and used + size > width:
            found.append(word.start())
            used = 0
        if size <= width:
            used += size
            continue
        offset = word.start()
        for part, wide in zip(graphemes(word[0]), cells, strict=True):
            if used and used + wide > width:
                found.append(offset)
                used = 0
            used += wide
            offset += len(part)
    return found


def _cells(word: str, tabs: Iterator[int]) -> list[int]:
    """How wide every grapheme of a word is."""
    if word.isascii() and _TAB not in word:
        return [1] * len(word)
    return [next(tabs, 1) if part == _TAB else cell_len(part) for part in graphemes(word)]


def _spans(text: str, first: int) -> Iterator[tuple[int, int]]:
    """Begin and end of every grapheme from an offset on, at which one begins."""
    for part in graphemes(text[first:]):
        yield first, first + len(part)
        first += len(part)


def _safe(text: str, at: int) -> int:
    """A place before an offset where a grapheme begins: nothing joins a blank to what is before it."""
    return max(text.rfind(" ", 0, max(at - 1, 0)), 0)
