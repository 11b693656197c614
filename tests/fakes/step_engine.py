"""An engine on a GPU whose step times are made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat

from runtime.protocol import KChunk
from tests.fakes.fake_engine import FakeEngine

BASE_MS, MS_A_TOKEN, MS_A_CHANNEL = 2.0, 0.001, 0.01


@dataclass
class FakeStepEngine(FakeEngine):
    """A step takes BASE_MS, something for every token in the cache, and for every channel in the table."""

    replies: object = field(default_factory=lambda: repeat([3, 1, 4, 1, 5]))
    vocab_size: int = 50
    end: int = 2
    context_limit: int = 4096
    table: KChunk = field(default_factory=KChunk)
    timed: list[tuple[int, KChunk]] = field(default_factory=list)

    def set_k_chunk(self, table: KChunk) -> None:
        self.table = table

    def step_milliseconds(self, position: int, replays: int) -> float:
        assert position <= self.position
        self.timed.append((position, self.table))
        return BASE_MS + MS_A_TOKEN * position + MS_A_CHANNEL * self.table.total

    def kernels_per_token(self) -> int:
        return 77 + (8 if self.table.total else 0)

    def memory(self) -> dict[str, int]:
        return {"weights": 5_000_000_000, "cache": 1_000_000_000}
