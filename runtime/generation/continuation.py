"""An answer whose tokens are chosen on the host, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from runtime.generation.sampler import Sampler
from runtime.generation.settings import SamplingSettings

if TYPE_CHECKING:
    import torch


class HostContinuation:
    """Implements `runtime.generation.engine.Continuation` for an engine that decodes a token when told to."""

    def __init__(
        self, logits: torch.Tensor, settings: SamplingSettings, decode: Callable[[int], torch.Tensor]
    ) -> None:
        """logits: float32 [vocab] after the prompt. decode: appends a token; the logits after it."""
        self._logits, self._decode = logits, decode
        # Repetition counts within the answer only: the prompt may be quoted, and it holds the very token that
        # ends a turn, which must not become less likely with every turn.
        self._sampler = Sampler(settings)
        self._given: int | None = None

    def next(self) -> int:
        """Append the token given before, then choose the next one."""
        if self._given is not None:
            self._logits = self._decode(self._given)
        self._given = self._sampler.pick(self._logits)
        return self._given

    def close(self) -> None:
        """Nothing is computed ahead, so nothing is to be forgotten."""
