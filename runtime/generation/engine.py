"""What an answer needs of the engine. Implemented by `runtime.engine`; faked in tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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


class Engine(Protocol):
    """A loaded model with one sequence in its KV cache."""

    context_limit: int
    vocab_size: int

    @property
    def position(self) -> int:
        """Tokens in the KV cache."""
        ...

    def truncate(self, n: int) -> None:
        """Keep the first n tokens of the KV cache."""
        ...

    def prefill(self, tokens: Sequence[int], check: Callable[[], None]) -> torch.Tensor:
        """Append tokens (at least one); logits of the last, float32 [vocab].

        `check` is called between chunks and may raise; the chunks done by then stay in the cache.
        """
        ...

    def decode(self, token: int) -> torch.Tensor:
        """Append one token; logits after it, float32 [vocab]."""
        ...

    def set_slowdown(self, pct: float, lossless: bool) -> None:
        """Take the table of this slider position from the next decode on."""
        ...

    def slider(self) -> SliderReading:
        """The slider's present state."""
        ...
