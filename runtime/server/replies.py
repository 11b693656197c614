"""From the engine's events to OpenAI's documents: a chat completion, or the chunks of a stream."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from runtime.protocol.commands import LOSSLESS
from runtime.protocol.events import Done, Event, KChunk, Loaded, Stats, Token

# Everything else is "stop": a full context is the only other limit.
FINISH = {"length": "length", "context": "length"}


@dataclass(slots=True)
class Answer:
    """What is known of one answer so far; `push` takes the engine's events."""

    model: str
    base: str
    identity: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    text: str = ""
    _stats: Stats | None = None
    _done: Done | None = None

    def push(self, event: Event) -> str:
        """Take one event; the text that it adds."""
        match event:
            case Token():
                self.text += event.text
                return event.text
            case Stats():
                self._stats = event
            case Done():
                self._done = event
        return ""

    @property
    def finish_reason(self) -> str | None:
        """Why it ended, in OpenAI's words; None while it goes on."""
        return FINISH.get(self._done.result.get("finish_reason", ""), "stop") if self._done else None

    @property
    def usage(self) -> dict[str, Any]:
        """Tokens that were read and written; those that the cache held already are among the read ones."""
        stats = self._stats
        read, written, cached = (
            (stats.prompt_tokens, stats.completion_tokens, stats.reused_tokens) if stats else (0, 0, 0)
        )
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    @property
    def figures(self) -> dict[str, Any]:
        """What no other server has: the slider of this answer, and what it cost and gave."""
        stats, result = self._stats, self._done.result if self._done else {}
        return {
            "base": self.base,
            "device": result.get("device", ""),
            "slowdown_target_pct": stats.slowdown_target_pct if stats else 0.0,
            "slowdown_measured_pct": stats.slowdown_measured_pct if stats else None,
            "lossless": self.base == LOSSLESS or bool(stats and stats.lossless),
            "k_chunk": msgspec.to_builtins(stats.k_chunk if stats else KChunk()),
            "channels_corrected": stats.channels_corrected if stats else 0,
            "decode_tokens_per_s": stats.decode_tokens_per_s if stats else 0.0,
            "prefill_s": stats.prefill_s if stats else 0.0,
            "dropped_messages": result.get("dropped_messages", 0),
        }

    def completion(self) -> dict[str, Any]:
        """The whole answer as one document."""
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": self.usage,
            "decdec": self.figures,
        }

    def chunk(self, delta: dict[str, Any], includes_usage: bool) -> dict[str, Any]:
        """One piece of a stream; the one that ends it carries the reason and the figures."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": self.finish_reason}
        document = {**self._head("chat.completion.chunk"), "choices": [choice]}
        if includes_usage:
            document["usage"] = None
        if self.finish_reason:
            document["decdec"] = self.figures
        return document

    def usage_chunk(self) -> dict[str, Any]:
        """The last piece of a stream that was asked for usage."""
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": self.usage}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.identity,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": f"decdec-{self.base}",
        }


def model_document(name: str, created: float, size: int, loaded: Loaded | None) -> dict[str, Any]:
    """An entry of the list of models; what is in memory tells more."""
    here = loaded is not None and loaded.model == name
    return {
        "id": name,
        "object": "model",
        "created": int(created),
        "owned_by": "decdec-chat",
        "decdec": {
            "bytes": size,
            "loaded": here,
            "context_limit": loaded.context_limit if loaded and here else None,
            "tuned": bool(loaded.path) if loaded and here else None,
        },
    }
