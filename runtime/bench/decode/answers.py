"""What a person notices besides speed: time to the first token, and the slider moved at every token."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence

from runtime.bench.decode.step_rows import POSITION, Subject, device_gb
from runtime.bench.decode.stepping import answer_seconds, prefill_ms, random_tokens
from runtime.bench.table import Row
from runtime.protocol.commands import MAX_SLOWDOWN_PCT

PROMPTS = (512, 2048)
MOVES = 1000


def first_token_rows(subject: Subject, corrected: bool, prompts: Sequence[int] = PROMPTS) -> Iterator[Row]:
    """Milliseconds from an empty cache to the logits after prompts of several lengths."""
    for count in prompts:
        ms = prefill_ms(subject.engine, random_tokens(subject.engine, count))
        row = {"model": subject.model, "weights": subject.weights, "prompt": count, "corrected": corrected}
        yield {**row, "ms": ms, "tokens/s": 1e3 * count / ms}


def schedule(moves: int = MOVES, seed: int = 0) -> list[float]:
    """Slider positions in percent, a new one for every token."""
    generator = random.Random(seed)
    return [round(generator.uniform(0, MAX_SLOWDOWN_PCT), 1) for _ in range(moves)]


def move_rows(subject: Subject, moves: int = MOVES) -> Iterator[Row]:
    """An answer with the slider at rest, and one with a move before every token, twice."""
    still = [MAX_SLOWDOWN_PCT / 2] * moves
    answers = [_moved(subject, pcts) for pcts in (still, schedule(moves), schedule(moves))]
    for (row, tokens), name in zip(answers, ("at rest", "moved", "moved again"), strict=True):
        again = tokens == answers[1][1] if name == "moved again" else None
        yield {
            "model": subject.model,
            "weights": subject.weights,
            "slider": name,
            **row,
            "same tokens": again,
        }


def _moved(subject: Subject, pcts: Sequence[float]) -> tuple[Row, list[int]]:
    before = device_gb()["GB"]
    move = lambda number: subject.engine.set_slowdown(pcts[number], False)  # noqa: E731
    tokens, seconds = answer_seconds(subject.engine, POSITION, len(pcts), move)
    after = device_gb()["GB"]
    # The first token waits for no step.
    ms = sorted(1e3 * taken for taken in seconds[1:])
    row = {
        "tokens": len(tokens),
        "positions": len(set(pcts)),
        "median ms": statistics.median(ms),
        "99 % ms": ms[int(0.99 * len(ms))],
        "longest ms": ms[-1],
        "GB before": before,
        "GB after": after,
    }
    return row, tokens
