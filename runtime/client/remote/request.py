"""The body of a chat completion, and what may be changed about it when a server does not take it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from runtime.client.remote.failures import Refused
from runtime.protocol.commands import Generate, Message

# What we ask for ourselves: nobody misses it where a server does not know it.
_OWN_FIELDS = ("stream_options", "continue_final_message", "add_generation_prompt")
_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
# Servers do not agree on the name; those that know one of them ignore the other.
_OTHER_NAMES = {"repetition_penalty": "repeat_penalty"}
_REFUSALS = (400, 413, 422, 500)
_OVERFLOW = re.compile(
    r"context[ _](?:length|window|size)|maximum context|max_model_len|exceed_context|too many tokens"
    r"|prompt is too long|longer than the (?:model's )?(?:maximum|context)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a server. `without`: own fields it does not take; `dropped`: messages left out."""

    command: Generate
    model: str
    without: frozenset[str] = frozenset()
    dropped: int = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """Those that are sent: the system prompt and what was not dropped."""
        head, turns = _split(self.command.messages)
        return (*head, *turns[self.dropped :])

    @property
    def continued(self) -> str:
        """The beginning of the answer, where the server is to go on with it."""
        last = self.command.messages[-1]
        return last.content if last.role == "assistant" else ""

    def body(self) -> bytes:
        """As JSON. What is no Unicode in a message becomes "?"."""
        fields: dict[str, Any] = {
            "model": self.model,
            "messages": [msgspec.to_builtins(message) for message in self.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._sampling(),
        }
        if self.continued:
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        if self.command.stop:
            fields["stop"] = list(self.command.stop)
        if self.command.max_tokens is not None:
            fields[_NEW_LIMIT if _LIMIT in self.without else _LIMIT] = self.command.max_tokens
        kept = {name: value for name, value in fields.items() if name not in self.without}
        return json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace")

    def adapted(self, refused: Refused) -> ChatRequest | None:
        """The request as this server may take it, None where nothing is left to change."""
        if refused.status not in _REFUSALS:
            return None
        named = frozenset(name for name in _OWN_FIELDS if name in refused.said) - self.without
        if _NEW_LIMIT in refused.said and self.command.max_tokens is not None:
            named |= {_LIMIT} - self.without
        if named:
            return dataclasses.replace(self, without=self.without | named)
        return self._shorter() if _OVERFLOW.search(refused.said) else None

    def _sampling(self) -> dict[str, Any]:
        asked = msgspec.structs.asdict(self.command.sampling)
        given = {name: value for name, value in asked.items() if value is not None}
        others = {other: given[name] for name, other in _OTHER_NAMES.items() if name in given}
        return given | others

    def _shorter(self) -> ChatRequest | None:
        """Without the older half of what is sent, beginning at a question; the last question stays."""
        _, turns = _split(self.command.messages)
        starts = [at for at, message in enumerate(turns) if message.role == "user" and at > self.dropped]
        if not starts:
            return None
        middle = (self.dropped + len(turns)) // 2
        return dataclasses.replace(self, dropped=next((at for at in starts if at >= middle), starts[-1]))


def characters(messages: Sequence[Message]) -> int:
    """Length of a conversation."""
    return sum(len(message.content) for message in messages)


def _split(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    count = 1 if messages and messages[0].role == "system" else 0
    return messages[:count], messages[count:]
