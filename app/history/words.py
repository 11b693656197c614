"""Words as they are looked for: one form for every script, so that what is typed meets what was written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

# Vowel points and accents that people leave out when they look for something.
_LEFT_OUT = ((0x0300, 0x036F), (0x0591, 0x05C7), (0x0610, 0x061A), (0x064B, 0x065F), (0xFE00, 0xFE0F))
# Written without blanks between words: Thai and Lao, Burmese, Khmer, kana and ideographs.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF), (0x20000, 0x3FFFF))
_WISH = re.compile(r'"([^"]*)"?|(\S+)')

Phrase = tuple[str, ...]
Span = tuple[int, int]


def _within(code: int, ranges: Iterable[Span]) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _form(code: int) -> str:
    """What a folded character becomes: itself, a word of its own, nothing, or a blank between words."""
    char, category = chr(code), unicodedata.category(chr(code))
    if (
        category == "Cf"
        or (category == "Sk" and code > 0x7F)
        or (category == "Mn" and _within(code, _LEFT_OUT))
    ):
        return ""
    if category[0] in "LMN" or category == "Co":
        return f" {char} " if _within(code, _UNSPACED) else char
    return f" {char} " if category == "So" else " "


class _Forms(dict[int, str]):
    """A table for `str.translate` that learns a character when it first meets it."""

    def __missing__(self, code: int) -> str:
        self[code] = form = _form(code)
        return form


_FORMS = _Forms()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKD", text).casefold().translate(_FORMS)


@lru_cache(maxsize=4096)
def _folded_char(char: str) -> str:
    return _folded(char)


def tokens(text: str) -> str:
    """The words of a text, folded, one blank apart: no case, no accents, no punctuation.

    Where a script puts no blanks between words every character counts as one; so does every emoji.
    """
    return " ".join(_folded(text).split())


def phrases(wish: str) -> tuple[Phrase, ...]:
    """What somebody typed as phrases that must all be found; `"two words"` in quotes are one phrase.

    The last word of a phrase may be the beginning of a longer one. Words without a letter are left out.
    """
    parts = (tokens(quoted or word) for quoted, word in _WISH.findall(wish))
    return tuple(dict.fromkeys(tuple(part.split()) for part in parts if part))


def match(phrase: Phrase) -> str:
    """A phrase in the language of the full-text index."""
    return f'"{" ".join(phrase)}" *'


def says(text: str, phrase: Phrase) -> bool:
    """Whether a text holds a phrase, without an index."""
    return f" {' '.join(phrase)}" in f" {tokens(text)}"


def spans(text: str, wanted: Iterable[Phrase]) -> list[Span]:
    """Where the phrases stand in a text, in order and apart, as slices of it."""
    folded, places = _placed(text)
    found = sorted((span for phrase in wanted for span in _found(folded, phrase)), key=_longest_first)
    return list(_apart((places[start], places[end - 1] + 1) for start, end in found))


def _placed(text: str) -> tuple[str, range | list[int]]:
    """The folded text, and for each of its characters the place in the text that it came from."""
    if text.isascii():
        return _folded(text), range(len(text))
    parts, places = [], []
    for place, char in enumerate(text):
        part = _folded_char(char)
        parts.append(part)
        places += [place] * len(part)
    return "".join(parts), places


def _longest_first(span: Span) -> Span:
    return span[0], -span[1]


def _found(folded: str, phrase: Phrase) -> Iterator[Span]:
    pattern = r"(?<!\S)" + r"\s+".join(map(re.escape, phrase))
    return (match.span() for match in re.finditer(pattern, folded))


def _apart(found: Iterable[Span]) -> Iterator[Span]:
    """Spans without the parts that an earlier one covers."""
    end = 0
    for start, stop in found:
        if stop > end:
            yield max(start, end), stop
            end = stop
