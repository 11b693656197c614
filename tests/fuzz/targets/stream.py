"""Text on its way from tokens to the screen: whatever the pieces, the same as the whole text, and in time.

The first byte of an input says how it is cut into pieces.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

from rich.console import Console
from rich.style import Style

from app.chat.markdown import Answer, theme_from
from app.code_blocks import code_blocks
from app.stream import BlockStream
from app.text import Neutraliser, neutralise, one_line
from app.thinking import split
from runtime.client.remote.thinking import ThinkingJoiner
from runtime.text.detokenizer import Detokenizer
from runtime.text.stops import StopMatcher
from tests.fuzz.mutations import mutate_bytes

NAME = "stream"
STOPS = ("\nUser:", "<|im_end|>", "aab", "x" * 300)
_LONG = 600
_WELL = (
    "# Hi\n\npara *one*\ncont\n\n- a\n\n  inside\n- b\n\n```py\nx\n\ny\n```\n|a|\n|-|\n|1|\n\nend aab",
    "<think>\nhm\n</think>\n\nSay\nUser: no",
    "é 東京 👩‍👩‍👧 \U0001f1e9\U0001f1ea ~~x~~ [a](javascript:alert(1)) ![b](file:///etc/passwd) <b>",
    "\x1b[31mred\x1b]0;t\x07\x9b2J\u202eevil\u2066\r\n\rover\x00[red]x[/red] [@click=app.quit]y[/]",
    "a" + "\u0301" * 5000 + "\u200b" * 5000 + "\u2028\u2029\ufeff",
    "".join(f"{at}. item\n   more\n" for at in range(300)),
    "~~~py\n" + "line\n" * 500 + "~~~\n\nend",
)
# What a parser of Markdown may take the square of, or nest.
_UNITS = (
    ">", "> ", "*", "**a", "_", "[", "[a](", "![", "](", "`", "``` ", "~", "~~a", "|", "|-", "- ",
    "* a\n  ", "1. ", "#", "<", "<a ", "<!--", "&", "&#", "\\", "\n", " ", "\t", "a\n", "a\n=\n", "\n```\n",
    "\n- a\n", "|a|\n", "\ta\n", "[x]: <", "(", "\u0301", "\u200d", "\u1160", "\U0001f468\u200d",
    "\U0001f1e9", "a\u0301", "http://a", "!\"#$%&'", "`a", "*a_b", "<think>", "</think>", "</", "aa", "\r",
    "\u2028",
)  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """Texts of models, and the long ones that parsers are slow at."""
    long = [unit * (_LONG // len(unit)) for unit in _UNITS]
    long += ["|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "|b" * 500 + "|\n", "> " * 300 + "a", "- " * 300 + "a"]
    long += [" " * at + "- a\n" for at in (2000,)] + ["".join(" " * (2 * at) + "- a\n" for at in range(150))]
    return [b"\x03" + text.encode() for text in [*_WELL, *long]]


def check(data: bytes, folder: Path) -> None:
    """Every stage piece by piece, and as a whole."""
    step, raw = 1 + (data[0] if data else 0) * 7, data[1:]
    text = raw.decode("utf-8", "replace")
    _detokenise(raw)
    pieces = [*_cut(text, max(step, len(text) // 16))]
    _stop(text, pieces)
    _think(text, pieces)
    safe = Neutraliser()
    assert "".join(map(safe.push, pieces)) + safe.finish() == neutralise(text)
    _blocks(text, pieces)
    _draw(text)


def mutate(data: bytes, random: Random) -> bytes:
    """Bytes changed, a unit repeated in the middle, or another text behind."""
    if random.random() < 0.5:
        return mutate_bytes(data, random)
    at = random.randrange(len(data) + 1)
    unit = random.choice(_UNITS) * random.choice((1, 3, 200))
    return data[:at] + random.choice((unit, random.choice(_WELL))).encode() + data[at:]


def _cut(text: str, step: int) -> Iterator[str]:
    for at in range(0, len(text), step):
        yield text[at : at + step]


def _detokenise(raw: bytes) -> None:
    names = {at: f"<0x{at:02X}>" for at in range(256)}
    fake = SimpleNamespace(
        token_of=names.get,
        hidden=frozenset(),
        decoder_kinds=frozenset({"ByteFallback"}),
        strips_first_space=False,
    )
    detokenizer = Detokenizer(fake)
    shown = "".join(map(detokenizer.push, raw))
    whole = raw.decode("utf-8", "replace")
    assert whole.startswith(shown)
    assert len(whole) - len(shown) <= 3
    assert detokenizer.finish() == ""


def _stop(text: str, pieces: list[str]) -> None:
    matcher = StopMatcher(STOPS)
    shown = "".join(map(matcher.push, pieces)) + matcher.finish()
    found = [at for stop in STOPS if (at := text.find(stop)) >= 0]
    assert matcher.hit == bool(found)
    if not found:
        assert shown == text
    assert text.startswith(shown)


def _think(text: str, pieces: list[str]) -> None:
    parts = split(text)
    assert parts.text in text
    assert parts.thinking in text
    joiner = ThinkingJoiner()
    assert "".join(joiner.push("", piece) for piece in pieces) + joiner.finish() == text


def _blocks(text: str, pieces: list[str]) -> None:
    stream, end = BlockStream(), 0
    for piece in pieces:
        end += len(piece)
        before = stream.settled
        stream.push(text[:end])
        assert before <= stream.settled <= end
        assert stream.tail.endswith(text[stream.settled : end])
    code_blocks(text)


def _draw(text: str) -> None:
    safe = one_line(text)
    assert not _UNSAFE & set(safe)
    console = Console(file=io.StringIO(), width=60, color_system=None, legacy_windows=False)
    theme = theme_from(lambda name: Style())
    lines = console.render_lines(Answer(split(text).text, theme, "monokai"), pad=False)
    for line in lines:
        assert not _UNSAFE & {char for segment in line for char in segment.text}, line
        assert all(segment.style is None or segment.style.link is None for segment in line)


_CONTROLS = (*range(9), *range(11, 32), *range(127, 160), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_UNSAFE = set(map(chr, _CONTROLS))
