"""Code blocks are coloured as Rich colours them, unless that takes long: then the text is there, plain."""

import io
import random
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.style import Style
from rich.syntax import Syntax
from rich.theme import Theme

from app.chat import highlighting, time_limit
from app.chat.highlighting import MAX_CHARACTERS, STEADY, UNSTEADY, BoundedLexer, BoundedSyntax, Highlighting
from app.chat.markdown import STYLES, Answer

NAMES = [name for names in STYLES.values() for name in names]
PLAIN = Theme({name: Style() for name in [*NAMES, "markdown.code_block"]})
SAMPLES = {
    "python": 'import os\n\n\n@cached\ndef f(x: int) -> str:\n    """Doc."""\n    return f"{x!r} %s"  # it\n',
    "bash": "$ for f in *.txt; do\n  echo \"$f\" | sed 's/a/b/' > out # x\ndone\n",
    "cpp": "#include <vector>\n// c\nint main(int n) { return std::max(1, n); } /* a\nb */\n",
    "csharp": 'namespace A { public class B : C { int F(string s) => 1; } }\n',
    "JSON": '{"a": [1, 2.5, null, "x\\n"], "b": {"c": true}}\n',
    "html": "<p class=\"a\">x</p><script>let a = 1;</script><style>p { color: red }</style>\n",
    "console": "$ ls -l\ntotal 0\n$ echo $HOME\n",
    "yaml": "a:\n  - b: 1 # c\n  - 'd'\n",
    "make": "all: a.o\n\tcc -o $@ $<\n",
    "text": "just words\n\n\tindented\n",
}  # fmt: skip
HOSTILE = [
    ("autoit", "\t" * 1000 + "!"),
    ("bash", "$'" + "\\\\" * 1000 + "!"),
    ("c", "\0" + "\n" * 4000 + "\0"),
    ("csharp", "a\n" * 2000),
    ("docker", "VOLUME " + "\t" * 4000),
    ("gherkin", " \n" * 1000),
    ("ini", "a" + " " * 4000),
    ("perl", "s!!" + "\\\\" * 1000),
    ("php", "<?php <<<a" + "é" * 4000),
    ("markdown", "````markdown\n```autoit\n" + "\t" * 1000 + "!\n```\n````"),
]
needs_timer = pytest.mark.skipif(sys.platform == "win32", reason="nothing ends a match there")


def joined(tokens):
    return "".join(text for _, text in tokens)


@pytest.mark.parametrize("language", SAMPLES)
@pytest.mark.parametrize("theme", ["monokai", "friendly", "ansi_dark"])
@needs_timer
def test_common_code_looks_as_rich_draws_it(language, theme):
    look = {"theme": theme, "word_wrap": True, "background_color": "default"}

    def drawn(code):
        console = Console(file=io.StringIO(), width=40, force_terminal=True, color_system="truecolor")
        console.print(code)
        return console.file.getvalue()

    bounded = BoundedSyntax(SAMPLES[language], BoundedLexer(Highlighting(), language), **look)
    assert drawn(bounded) == drawn(Syntax(SAMPLES[language], language, **look))


@pytest.mark.parametrize("name", (STEADY + UNSTEADY).split())
def test_every_language_of_the_list_is_known(name):
    assert name in Syntax("", name).lexer.aliases


@pytest.mark.parametrize(("language", "code"), HOSTILE, ids=[language for language, _ in HOSTILE])
@needs_timer
def test_no_code_holds_the_chat(language, code):
    highlighting = Highlighting(budget_s=0.05)
    highlighting.tokens(language, "x\n")
    started = time.process_time()
    assert joined(highlighting.tokens(language, code + "\n")) == code + "\n"
    assert time.process_time() - started < 0.2


@needs_timer
def test_all_blocks_of_an_answer_share_the_time():
    block = "```bash\n$'" + "\\\\" * 100 + "\n```\n"
    warm = Console(file=io.StringIO(), width=80)
    warm.print(Answer("```bash\nls\n```", PLAIN, "monokai"))
    started = time.process_time()
    warm.print(Answer("".join(f"{at}\n\n{block}" for at in range(20)), PLAIN, "monokai"))
    assert time.process_time() - started < 0.5


def test_an_answer_is_not_read_again_for_another_width(monkeypatch):
    answer, wide, narrow = Answer("```python\nx = 1\n```", PLAIN, "monokai"), *map(console, (60, 30))
    wide.print(answer)
    monkeypatch.setattr(highlighting, "_collect", None)
    narrow.print(answer)
    assert "x = 1" in narrow.file.getvalue()


def console(width):
    return Console(file=io.StringIO(), width=width)


def test_what_is_beyond_the_limits_is_plain_and_whole():
    code = "x = 1\n" * MAX_CHARACTERS
    tokens = Highlighting().tokens("python", code)
    assert joined(tokens) == code
    assert len(tokens) > 1
    assert len(tokens[-1][1]) >= len(code) - MAX_CHARACTERS
    assert str(tokens[-1][0]) == "Token.Text"
    assert len(Highlighting().tokens("python", "x" * (MAX_CHARACTERS + 1) + "\n")) == 1
    assert len(Highlighting().tokens("gherkin", "Feature: x\n")) == 1


def test_without_a_timer_only_what_is_steady_is_coloured(monkeypatch):
    monkeypatch.setattr(highlighting, "can_interrupt", lambda: False)
    assert len(Highlighting().tokens("python", "x = 1\n")) > 1
    assert len(Highlighting().tokens("bash", "ls\n")) == 1
    assert len(Highlighting().tokens("python", "'%" + "0" * 4000 + "\n")) == 1
    slow = Highlighting(budget_s=1e-6).tokens("python", "x = 1\n" * 100)
    assert joined(slow) == "x = 1\n" * 100
    assert len(slow) < 10


@given(st.sampled_from((STEADY + UNSTEADY).split()), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_text_is_always_complete(language, seed):
    pieces = [
        "a",
        " ",
        "\n",
        "\\",
        '"',
        "'",
        "<",
        ">",
        "/*",
        "*/",
        "{",
        "(",
        "<<A\n",
        "#",
        "=",
        "0",
        "é",
        "\ufeff",
    ]
    code = "".join(random.Random(seed).choices(pieces, k=60)) + "\n"
    assert joined(Highlighting().tokens(language, code)) == code


@needs_timer
def test_work_is_ended_in_the_middle_and_what_comes_later_is_left_alone():
    def forever():
        while True:
            pass

    assert not time_limit.within(0.02, forever)
    assert time_limit.within(0.02, lambda: None)
    ended = time.process_time() + 0.06
    while time.process_time() < ended:
        pass


@needs_timer
def test_an_error_of_the_work_is_told_and_ends_the_limit():
    with pytest.raises(ZeroDivisionError):
        time_limit.within(0.02, lambda: 1 // 0)
    ended = time.process_time() + 0.06
    while time.process_time() < ended:
        pass
