"""From a conversation to token ids: control tokens are those of the template, never those in a message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runtime.protocol.commands import Message
from runtime.text.template import ChatTemplate
from runtime.text.tokenizer import Tokenizer

# Noncharacters of Unicode: no text holds them, and template code treats them as ordinary letters.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARKS = re.compile(f"[{_OPEN}{_CLOSE}]")
THINK_OPENING = "<think>"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation. `opening`: visible text the template itself began the answer with."""

    text: str
    ids: tuple[int, ...]
    opening: str = ""


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

    def build(self, messages: Sequence[Message]) -> Prompt:
        """Raises DecdecError when the template cannot render the conversation."""
        text = self._template.render([self._marked(message) for message in messages])
        opening = f"{THINK_OPENING}\n" if text.rstrip().endswith(THINK_OPENING) else ""
        return Prompt(text, tuple(self._encode(text)), opening)

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

    def _marked(self, message: Message) -> Message:
        content = _MARKS.sub("", message.content)
        content = self._tokenizer.control_pattern.sub(f"{_OPEN}\\g<0>{_CLOSE}", content)
        return Message(message.role, content)

    def _encode_marked(self, text: str) -> list[int]:
        """Split at marked tokens; a lone mark (its partner cut off by the template) is a boundary too."""
        first, *pieces = self._marked_tokens.split(text)
        ids = self._tokenizer.encode(first)
        for at, piece in enumerate(pieces):
            if piece:
                ids += self._tokenizer.encode_inner(piece, plain=at % 2 == 0)
        return ids

    @cached_property
    def _marked_tokens(self) -> re.Pattern[str]:
        return re.compile(f"{_OPEN}({self._tokenizer.control_pattern.pattern}){_CLOSE}|{_MARKS.pattern}")
