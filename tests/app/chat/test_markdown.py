"""What is drawn of an answer: everything that is stored, whatever Markdown would hide."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.style import Style
from rich.theme import Theme

from app.chat.markdown import STYLES, Answer
from app.code_blocks import code_blocks
from app.stream import BlockStream

NAMES = [name for names in STYLES.values() for name in names]
PLAIN = Theme({name: Style() for name in [*NAMES, "markdown.code_block"]})


def drawn(source, width=60):
    """The lines of an answer, without the blanks around them."""
    console = Console(width=width, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(Answer(source, PLAIN, "monokai"))
    lines = [line.strip() for line in captured.get().splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("Use <div> in List<String> or Vec<u8>.", ["Use <div> in List<String> or Vec<u8>."]),
        ("<details>\nx\n</details>", ["<details> x </details>"]),
        ("<!-- note -->seen", ["<!-- note -->seen"]),
        ("<script>\n\nx\n\n</script>", ["<script>", "x", "</script>"]),
        ("see [1]\n\n[1]: http://x.y", ["see [1]", "[1]: http://x.y"]),
        ("[a](http://x.y) ![b](http://x.y/z.png)", ["a (http://x.y) !b (http://x.y/z.png)"]),
        ("~~gone~~ 2 < 3 && <b", ["gone 2 < 3 && <b"]),
    ],
)
def test_nothing_is_taken_for_markup_that_a_reader_would_miss(source, lines):
    assert drawn(source) == lines


def test_long_words_are_broken_and_not_cut_off():
    word = "".join(chr(ord("a") + at % 26) for at in range(100))
    for source in (f"| a | b |\n|-|-|\n| c | {word} |", word, f"`{word}`", f"```\n{word}\n```", f"# {word}"):
        assert word in re.sub(r"\W", "", "".join(drawn(source, 30))), source


def test_lists_in_lists_are_there_to_the_last():
    source = "".join(f"{'  ' * depth}- w{depth}\n" for depth in range(15))
    assert [line.removeprefix("• ") for line in drawn(source)] == [f"w{depth}" for depth in range(15)]


def test_code_within_tags_can_be_copied():
    assert [block.text for block in code_blocks("<details>\n```\nx = 1\n```\n</details>")] == ["x = 1\n"]


KINDS = [
    "{}", "# {}", "- {}\n- {}", "1. {}\n2. {}", "> {}\n> > {}", "| {} | {} |\n|-|-|\n| {} | {} |",
    "```\n{}\n```", "    {}", "**{}** _{}_ `{}`", "<p>{}</p>", "<!--\n{}\n-->", "[{}](http://{})",
    "[{}]: {}", "<{}>", "{}\n---",
]  # fmt: skip
PIECES = st.tuples(st.sampled_from(KINDS), st.sampled_from(["\n", "\n\n", "\n\n\n"])).map("".join)
SOURCES = st.lists(PIECES, min_size=1, max_size=8).map("".join)


def words(text):
    return re.findall(r"w\d+w", text)


@given(SOURCES, st.sampled_from([26, 60, 200]))
@settings(max_examples=80, deadline=None)
def test_every_word_is_drawn_once_and_in_order_whole_and_while_it_streams(source, width):
    source = source.format(*(f"w{at}w" for at in range(40)))
    whole = "".join(drawn(source, width))
    assert words(whole) == words(source)
    stream, settled = BlockStream(), []
    for end in range(0, len(source) + 5, 5):
        settled += stream.push(source[:end])
    pieces = [*(block.source for block in settled), stream.tail]
    assert words("".join("".join(drawn(piece, width)) for piece in pieces)) == words(source)
