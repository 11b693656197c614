"""Times of an engine's whole decode steps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from runtime.engine.slider import TunedPath
from runtime.generation.engine import Engine
from runtime.generation.settings import GREEDY
from runtime.layers.base import LinearKind
from runtime.protocol.events import KChunk

if TYPE_CHECKING:
    # They need triton, which a CPU has no use for.
    from kernels.gpu.dec.fetch import FetchConfig
    from runtime.engine.gpu.model import DeviceModel

# Rounds of base and corrected steps in turn, and replays of each in a round.
ROUNDS, REPLAYS = 7, 5
DRIVEN_TOKENS = 64


class StepEngine(Engine, Protocol):
    """An engine on a GPU as far as it is measured."""

    def set_k_chunk(self, table: KChunk) -> None:
        """Put a table in force directly."""
        ...

    def step_milliseconds(self, position: int, replays: int) -> float:
        """Median of a whole step at this place in the context, on the device's own clock."""
        ...

    def kernels_per_token(self) -> int:
        """Kernels that a step starts."""
        ...

    def memory(self) -> Mapping[str, int]:
        """Bytes of device memory by what they are for."""
        ...


@dataclass(frozen=True, slots=True)
class Tables:
    """What tuning gave: which channels at which position of the slider, and how their rows are fetched."""

    path: TunedPath
    fetching: Mapping[LinearKind, FetchConfig]
    seconds: float = 0.0


def new_engine(
    model: DeviceModel, tables: Tables | None = None, kv_bits: int = 16, prompt_correction: bool = True
) -> StepEngine:
    """The engine of a model; without `tables` its slider does not move."""
    from runtime.engine.gpu.engine import GpuEngine

    path, fetching = (tables.path, tables.fetching) if tables else (TunedPath([]), None)
    engine = GpuEngine(
        model, path=path, fetching=fetching, kv_bits=kv_bits, prompt_correction=prompt_correction
    )
    engine.warm()
    return engine


def random_tokens(engine: Engine, count: int) -> list[int]:
    """The same ones for the same engine and count."""
    generator = torch.Generator().manual_seed(count)
    return torch.randint(engine.vocab_size, (count,), generator=generator).tolist()


def fill(engine: Engine, position: int) -> torch.Tensor:
    """Let the cache hold so many random tokens, and nothing else; logits after them."""
    engine.truncate(0)
    return engine.prefill(random_tokens(engine, position), lambda: None)


def step_ms(engine: StepEngine, position: int) -> float:
    """Milliseconds of a step at a place in the context, at the table in force."""
    fill(engine, position)
    return engine.step_milliseconds(position, ROUNDS * REPLAYS)


def added_ms(engine: StepEngine, table: KChunk, position: int) -> tuple[float, float]:
    """Milliseconds that a table adds to a step, and those of the step without; medians of rounds in turn."""
    fill(engine, position)
    base, added = [], []
    for _ in range(ROUNDS):
        engine.set_k_chunk(KChunk())
        base.append(engine.step_milliseconds(position, REPLAYS))
        engine.set_k_chunk(table)
        added.append(engine.step_milliseconds(position, REPLAYS) - base[-1])
    return statistics.median(added), statistics.median(base)


def driven_tokens_per_s(engine: Engine, position: int, count: int = DRIVEN_TOKENS) -> float:
    """Tokens a second as an answer gets them, greedy: by the host's clock, from the second token on."""
    _, seconds = answer_seconds(engine, position, count + 1)
    return count / sum(seconds[1:])


def answer_seconds(
    engine: Engine, position: int, count: int, before: Callable[[int], object] = lambda number: None
) -> tuple[list[int], list[float]]:
    """`count` greedy tokens after `position` random ones, and what each took; `before` hears of each."""
    answer = engine.continuation(fill(engine, position), GREEDY)
    tokens: list[int] = []
    seconds: list[float] = []
    try:
        for number in range(count):
            before(number)
            started = time.perf_counter()
            tokens.append(answer.next())
            seconds.append(time.perf_counter() - started)
    finally:
        answer.close()
    return tokens, seconds


def prefill_ms(engine: Engine, tokens: Sequence[int], tries: int = 3) -> float:
    """Median milliseconds from an empty cache to the logits after the tokens, on the host."""
    taken = []
    for _ in range(tries + 1):
        engine.truncate(0)
        started = time.perf_counter()
        # Reading one logit waits for all of them.
        float(engine.prefill(tokens, lambda: None)[0])
        taken.append(1e3 * (time.perf_counter() - started))
    return statistics.median(taken[1:])
