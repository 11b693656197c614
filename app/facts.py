"""The line below an answer: how it ended, how fast it was, where the slider stood."""

from __future__ import annotations

from app import format
from app.conversation import Turn
from runtime.protocol.events import Stats


def of(turn: Turn, place: tuple[int, int] = (1, 1)) -> str:
    """`variant 2 of 3 · stopped · 41 tokens · 71.2 tok/s · at 5 % · 312 channels corrected · 480 reused`.

    `place`: which variant this is, of how many.
    """
    parts = [f"variant {place[0]} of {place[1]}"] if place[1] > 1 else []
    parts += [turn.ending] if turn.ending else []
    parts += _speed(turn.stats) if turn.stats and turn.stats.completion_tokens else []
    if turn.dropped_messages:
        parts.append(f"context full: {turn.dropped_messages} oldest messages left out")
    return " · ".join(parts)


def _speed(stats: Stats) -> list[str]:
    parts = [f"{format.number(stats.completion_tokens)} tokens", format.speed(stats.decode_tokens_per_s)]
    if stats.lossless:
        parts.append("lossless")
    elif stats.slowdown_target_pct:
        parts.append(f"at {format.percent(stats.slowdown_target_pct)}")
    if stats.channels_corrected and not stats.lossless:
        parts.append(f"{format.number(stats.channels_corrected)} channels corrected")
    if stats.reused_tokens:
        parts.append(f"{format.number(stats.reused_tokens)} reused")
    return parts
