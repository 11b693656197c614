"""The colours of code blocks, found in bounded time: a model or a file chooses both language and content."""

from __future__ import annotations

import re
import time
from typing import Any

from rich.syntax import Syntax

from app.chat.time_limit import can_interrupt, within

# For all code blocks of one answer together.
BUDGET_S = 0.1
# What comes behind is plain. A match asks for the time only now and then: more often the shorter the text.
MAX_CHARACTERS = 20_000
# A kind, as lexers tell it, and the text.
Tokens = list[tuple[Any, str]]
# Languages that need no more time for one match than the text is long, so that the time between two
# tokens is short whatever the text. (Of Python and JavaScript that is true without long runs.)
STEADY = """
    python py python3 py3 pyi pycon python-console javascript js typescript ts jsx react tsx json java
    rust rs go golang html css scss sql postgresql postgres yaml yml toml diff udiff xml kotlin swift lua
    r powershell pwsh posh ps1 psm1 haskell hs dart elixir ex exs graphql cmake nginx tex latex groovy zig
    protobuf proto
"""
_LONG_RUN = re.compile(r"[\s\d#+-]{300}")
# One match of these can take seconds or years: only where it can be ended in the middle.
UNSTEADY = """
    bash sh ksh zsh shell console shell-session c cpp c++ cuda cu csharp c# cs ini cfg dosini markdown md
    ruby rb php perl pl scala objective-c objectivec obj-c objc matlab julia jl docker dockerfile
    make makefile mf
"""
# What stands within them is of another language, whose rules are made ready before the time runs.
_WITHIN = {
    "html": "css javascript",
    **dict.fromkeys(["console", "shell-session", "make", "makefile", "mf"], "bash"),
    **dict.fromkeys(["docker", "dockerfile"], "bash json"),
    **dict.fromkeys(["pycon", "python-console"], "python"),
}
((_PLAIN, _),) = Syntax("", "text").default_lexer.get_tokens("\n")
_STEADY, _UNSTEADY = frozenset(STEADY.split()), frozenset(UNSTEADY.split())


class Highlighting:
    """The tokens of an answer's code blocks: kept, as an answer is drawn once for each width."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._left_s = budget_s
        self._found: dict[tuple[str, str], Tokens] = {}

    def tokens(self, language: str, code: str) -> Tokens:
        """The whole code in tokens; plain from where the time was over."""
        key = (language, code)
        if key not in self._found:
            self._found[key] = self._find(language, code)
        return self._found[key]

    def _find(self, language: str, code: str) -> Tokens:
        head = code[: code.rfind("\n", 0, MAX_CHARACTERS) + 1]
        lexer = _known(language, head) if self._left_s > 0 else None
        found: Tokens = []
        if lexer is not None:
            started = time.thread_time()
            _collect(lexer, head, found, self._left_s)
            self._left_s -= time.thread_time() - started
        return [*found, (_PLAIN, code[sum(len(text) for _, text in found) :])]


class BoundedLexer:
    """What Rich asks for tokens: of a language as a code block names it, out of an answer's time."""

    def __init__(self, highlighting: Highlighting, language: str) -> None:
        self._highlighting, self._language = highlighting, language.lower()

    def get_tokens(self, code: str) -> Tokens:
        """Every character of the code; Rich has put spaces for its tabs."""
        return self._highlighting.tokens(self._language, code)


class BoundedSyntax(Syntax):
    """Rich's highlighted code, with another lexer than the one Rich would look up."""

    def __init__(self, code: str, lexer: BoundedLexer, **look: Any) -> None:
        super().__init__(code, "text", **look)
        self._bounded = lexer

    @property
    def lexer(self) -> Any:
        """For Rich, which only asks it for tokens."""
        return self._bounded


def _known(language: str, code: str) -> Any:
    """The lexer of the language, None where the code is to be plain."""
    if language not in _STEADY | _UNSTEADY:
        return None
    if not can_interrupt() and (language not in _STEADY or _LONG_RUN.search(code)):
        return None
    for inner in _WITHIN.get(language, "").split():
        _ = Syntax("", inner).lexer
    lexer: Any = Syntax("", language).lexer
    if hasattr(lexer, "handlecodeblocks"):
        # Markdown would hand its own code blocks to any lexer there is.
        lexer.handlecodeblocks = False
    return lexer


def _collect(lexer: Any, code: str, found: Tokens, seconds: float) -> None:
    """Add tokens until the code or the time ends, or a lexer tells another text than it was given."""

    def collect() -> None:
        at, end = 0, time.thread_time() + seconds
        for _, kind, token in lexer.get_tokens_unprocessed(code):
            if not code.startswith(token, at) or time.thread_time() > end:
                return
            found.append((kind, token))
            at += len(token)

    if can_interrupt():
        within(seconds, collect)
    else:
        collect()
