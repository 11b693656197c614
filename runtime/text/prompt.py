"""From a conversation to token ids: control tokens are those of the template, never those in a message."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runtime.errors import DecdecError
from runtime.protocol.commands import Message
from runtime.text.template import ChatTemplate
from runtime.text.tokenizer import VISIBLE, Tokenizer

# Noncharacters of Unicode: no text holds them, and template code treats them as ordinary letters.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARKS = re.compile(f"[{_OPEN}{_CLOSE}]")
THINK_OPENING = "<think>"
# Characters that normalisers join into one, at most: composing letters and their marks.
COMPOSED = 4


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation. `opening`: visible text the template itself began the answer with.

    `continues`: it ends with an answer that is to go on, whose beginning is not to be told again.
    """

    text: str
    ids: tuple[int, ...]
    opening: str = ""
    continues: bool = False


class PromptBuilder:
    """Renders and encodes; remembers the last answer's own ids, so that its text is never encoded anew."""

    def __init__(self, template: ChatTemplate, tokenizer: Tokenizer) -> None:
        self._template, self._tokenizer = template, tokenizer
        self._known_text = ""
        self._known_ids: tuple[int, ...] = ()

    @classmethod
    def from_folder(cls, folder: Path, tokenizer: Tokenizer) -> PromptBuilder:
        """For the model in `folder`."""
        first = "".join(tokenizer.token_of(token_id) or "" for token_id in tokenizer.first_ids)
        return cls(ChatTemplate.from_folder(folder, first), tokenizer)

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings that belong to the template."""
        return self._template.stops

    def least_tokens(self, text: str) -> float:
        """At least so many tokens a message has, found without cutting it."""
        controls = sum(1 for _ in self._tokenizer.control_pattern.finditer(text))
        return max(len(text) / (self._tokenizer.longest_token * COMPOSED), controls)

    def build(self, messages: Sequence[Message]) -> Prompt:
        """A last message of the assistant is an answer that is to go on.

        Raises DecdecError when the template cannot render the conversation.
        """
        begun = messages[-1].content if messages[-1].role == "assistant" else ""
        asked = messages[:-1] if messages[-1].role == "assistant" else messages
        if not asked:
            raise DecdecError("There is nothing to answer", "the conversation holds no question")
        text = self._template.render([self._marked(message) for message in asked])
        opening = f"{THINK_OPENING}\n" if text.rstrip().endswith(THINK_OPENING) else ""
        if not begun:
            return Prompt(text, tuple(self._encode(text)), opening)
        own = begun.removeprefix(opening)
        return Prompt(text + own, tuple(self._encode_begun(text, own)), continues=True)

    def remember(self, prompt: Prompt, answer: str, answer_ids: Sequence[int]) -> None:
        """The model's own ids for `answer`: what it wrote may not be how the tokenizer would cut it."""
        self._known_text = prompt.text + answer
        self._known_ids = (*prompt.ids, *answer_ids)

    def _encode(self, text: str) -> list[int]:
        known, rest = self._known_text, text[len(self._known_text) :]
        # Only before a control token is the tokenizer's cut certain not to depend on what stands before it.
        if known and text.startswith(known) and self._tokenizer.control_pattern.match(rest):
            return [*self._known_ids, *self._encode_marked(rest)]
        return self._encode_marked(text)

    def _encode_begun(self, text: str, own: str) -> list[int]:
        """Ids of a prompt and the answer's beginning: the model's own text but for control tokens."""
        if self._known_text == text + own:
            return list(self._known_ids)
        marked = self._mark(own, VISIBLE)
        return [*self._encode(text), *self._encode_marked(marked, inner=True)]

    def _marked(self, message: Message) -> Message:
        return Message(message.role, self._mark(message.content))

    def _mark(self, text: str, but: Collection[str] = ()) -> str:
        """The text with marks around everything that looks like a control token."""

        def mark(match: re.Match[str]) -> str:
            return match[0] if match[0] in but else f"{_OPEN}{match[0]}{_CLOSE}"

        return self._tokenizer.control_pattern.sub(mark, _MARKS.sub("", text))

    def _encode_marked(self, text: str, *, inner: bool = False) -> list[int]:
        """Split at marked tokens; a lone mark (its partner cut off by the template) is a boundary too.

        `inner`: the text follows other text.
        """
        first, *pieces = self._marked_tokens.split(text)
        ids = self._inner([first], plain=False)[0] if inner else self._tokenizer.encode(first)
        plain, written = (
            iter(self._inner(pieces[::2], plain=True)),
            iter(self._inner(pieces[1::2], plain=False)),
        )
        return [*ids, *(id for at in range(len(pieces)) for id in next(written if at % 2 else plain))]

    def _inner(self, pieces: Sequence[str | None], plain: bool) -> list[list[int]]:
        """Ids of each piece, all at once: a pasted log may hold thousands of control tokens."""
        found = iter(self._tokenizer.encode_inner([piece for piece in pieces if piece], plain=plain))
        return [next(found) if piece else [] for piece in pieces]

    @cached_property
    def _marked_tokens(self) -> re.Pattern[str]:
        return re.compile(f"{_OPEN}({self._tokenizer.control_pattern.pattern}){_CLOSE}|{_MARKS.pattern}")
