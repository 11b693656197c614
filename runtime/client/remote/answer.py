"""One answer of a server: pieces in, events out, the same ones that a local generation gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from runtime.client.remote import failures, limits
from runtime.client.remote.documents import Piece, whole
from runtime.client.remote.meter import RemoteMeter
from runtime.client.remote.server import Server
from runtime.client.remote.thinking import ThinkingJoiner
from runtime.errors import DecdecError
from runtime.protocol.answers import answer_result
from runtime.protocol.events import Done, Event, FinishReason, Loaded, Stats, Token

# A screen is redrawn at most this often.
FLUSH_INTERVAL_S = 0.03


class RemoteAnswer:
    """Pieces go to `push` until `complete`; then `end` gives what a generation ends with.

    `dropped`: messages of the conversation that were not sent; a server may leave out more.
    `continued`: text that this goes on from.
    """

    def __init__(
        self,
        server: Server,
        loaded: Loaded,
        meter: RemoteMeter,
        continued: str = "",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._server, self._loaded, self._clock = server, loaded, clock
        self._joiner = ThinkingJoiner(continued)
        self._shown: list[str] = []
        self._pending, self._length = "", 0
        self._flushed = float("-inf")
        self._finish_reason = ""
        self.meter, self.dropped, self.complete = meter, 0, False

    @property
    def finished(self) -> bool:
        """Whether the text is whole; counts may follow."""
        return bool(self._finish_reason) or self.complete

    @property
    def begun(self) -> bool:
        """Whether any text came."""
        return self._length > 0

    @property
    def text(self) -> str:
        """Everything that was given out."""
        return "".join(self._shown)

    def push(self, piece: Piece) -> list[Event]:
        """Apply one piece. DecdecError when the server gave up, or will not come to an end."""
        if piece.failure:
            said = self._server.quoted(piece.failure)
            raise DecdecError(f"{self._server.host} gave up in the answer", said, "ask again")
        if piece.usage is not None:
            self.meter.usage = piece.usage
        if piece.figures is not None:
            self.meter.figures = piece.figures
        if piece.text or piece.reasoning:
            self.meter.piece(bool(piece.reasoning))
        self._take(self._joiner.push(piece.reasoning, piece.text))
        self._finish_reason = piece.finish_reason or self._finish_reason
        self.complete = piece.last
        return [*self._due_text(), *([self.meter.stats()] if self.meter.due() else [])]

    def end(self, *, stopped: bool = False) -> list[Event]:
        """The rest, the final Stats and Done. DecdecError when it ended as no answer ends."""
        if not stopped and not self.finished:
            raise failures.cut(self._server)
        if not stopped and self._finish_reason == "content_filter":
            raise DecdecError(
                f"{self._server.host} ended the answer", "its content filter did", "ask otherwise"
            )
        reason = "stopped" if stopped else self._reason()
        if reason == "stop":
            self._take(self._joiner.finish())
        rest, stats = self.rest(), self.meter.stats(final=True)
        return [*rest, stats, Done("generate", self._result(reason, stats))]

    def rest(self) -> list[Event]:
        """Text that came and was not given out yet."""
        text, self._pending = whole(self._pending)
        if not text:
            return []
        self._shown.append(text)
        self._flushed = self._clock()
        return [Token(text, self.meter.tokens)]

    def _take(self, text: str) -> None:
        self._length += len(text)
        if self._length > limits.MAX_ANSWER_CHARS:
            raise failures.too_large(self._server, "an answer", limits.MAX_ANSWER_CHARS)
        self._pending += text

    def _due_text(self) -> list[Event]:
        return self.rest() if self._clock() - self._flushed >= FLUSH_INTERVAL_S else []

    def _reason(self) -> FinishReason:
        if self._finish_reason != "length":
            return "stop"
        return "context" if self.meter.full else "length"

    def _result(self, reason: FinishReason, stats: Stats) -> dict[str, Any]:
        dropped = self.dropped + self.meter.figures.dropped_messages
        return answer_result(self.text, self._loaded, reason, stats, dropped)
