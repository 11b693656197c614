"""What an answer needs of the engine. Implemented by `runtime.engine`; faked in tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from runtime.errors import DecdecError
from runtime.generation.settings import SamplingSettings
from runtime.protocol.events import KChunk

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class SliderReading:
    """Where the slider stands and what it costs, in percent of a base-only step's time.

    `measured_pct` is None until both base-only and corrected steps were timed. `left_out`: corrections since
    loading that were not made because an input was NaN or infinite; the base alone gave those outputs.
    """

    target_pct: float
    measured_pct: float | None
    k_chunk: KChunk
    channels_corrected: int = 0
    lossless: bool = False
    left_out: int = 0


def unusable_scores() -> DecdecError:
    """The failure of an answer where no score of the next token is a number: a choice would be made up."""
    return DecdecError(
        "The model's output cannot be used",
        "its computation overflowed, and no score of the next token is a number",
        "ask again; if that does not help, prepare the model again or with another base",
    )


class Continuation(Protocol):
    """The tokens of one answer, which an engine may compute before they are asked for.

    While one is open nothing else may change the engine's cache.
    """

    def next(self) -> int:
        """The next token. Asking accepts the token given before: it is in the KV cache then.

        Must not be asked for when the token given before has no place, at `position` = `context_limit`.
        Raises `unusable_scores` where no token can be chosen.
        """
        ...

    def close(self) -> None:
        """Forget what was computed ahead; the last token given was not accepted, so it leaves the cache too.

        Does not fail, also after a `next` that did; a second call does nothing.
        """
        ...


class Engine(Protocol):
    """A loaded model with one sequence in its KV cache."""

    context_limit: int
    vocab_size: int

    @property
    def position(self) -> int:
        """Tokens in the KV cache, without those that a continuation computed ahead."""
        ...

    def truncate(self, n: int) -> None:
        """Keep the first n tokens of the KV cache."""
        ...

    def prefill(self, tokens: Sequence[int], check: Callable[[], None]) -> torch.Tensor:
        """Append tokens (at least one); logits of the last, float32 [vocab].

        They are there when it returns, so that a caller can time it. `check` is called between chunks and may
        raise; the chunks done by then stay in the cache.
        """
        ...

    def continuation(self, logits: torch.Tensor, settings: SamplingSettings) -> Continuation:
        """The answer to what the cache holds; `logits` are those that the last prefill gave."""
        ...

    def set_slowdown(self, pct: float, lossless: bool) -> None:
        """Take the table of this slider position from the next token that is computed on."""
        ...

    def slider(self) -> SliderReading:
        """The slider's present state."""
        ...
