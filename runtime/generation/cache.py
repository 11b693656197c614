"""The KV cache and the tokens it stands for, kept equal: what a prompt shares is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.generation.engine import Continuation, Engine
from runtime.generation.settings import SamplingSettings

if TYPE_CHECKING:
    import torch


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common beginning."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class PrefixCache:
    """An engine's cache together with its token history."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ids: list[int] = []

    @property
    def ids(self) -> list[int]:
        """Tokens in the cache, oldest first."""
        return self._ids[: self._engine.position]

    @property
    def used(self) -> int:
        """How many tokens the cache holds."""
        return self._engine.position

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        return self._engine.position >= self._engine.context_limit

    def prefill(self, prompt: Sequence[int], check: Callable[[], None]) -> tuple[torch.Tensor, int]:
        """Make the cache hold exactly `prompt`; logits after it, and how many tokens were there already."""
        # The last token is always computed: its logits are what is asked for.
        reused = min(common_prefix(self.ids, prompt), len(prompt) - 1)
        self._engine.truncate(reused)
        self._ids = list(prompt)
        return self._engine.prefill(prompt[reused:], check), reused

    def continuation(self, logits: torch.Tensor, settings: SamplingSettings) -> Continuation:
        """The answer to the prompt of the last `prefill`, which gave `logits`; its caller closes it."""
        return _Noted(self._engine.continuation(logits, settings), self._ids)

    def clear(self) -> None:
        """Forget everything: after a failure nobody knows how far the engine came."""
        self._ids = []
        self._engine.truncate(0)


@dataclass(frozen=True, slots=True)
class _Noted:
    """A continuation whose tokens are written down; the one that nobody accepted lies behind the position."""

    tokens: Continuation
    ids: list[int]

    def next(self) -> int:
        token = self.tokens.next()
        self.ids.append(token)
        return token

    def close(self) -> None:
        self.tokens.close()
