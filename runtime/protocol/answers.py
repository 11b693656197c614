"""The result of an answer, the same whoever wrote it: `run --json` prints it."""

from __future__ import annotations

from typing import Any

import msgspec

from runtime.protocol.events import FinishReason, Loaded, Stats


def answer_result(
    text: str, loaded: Loaded, reason: FinishReason, stats: Stats, dropped_messages: int
) -> dict[str, Any]:
    """Text, why it ended, and the final figures, as the Done event of a generation carries them."""
    return {
        "text": text,
        "model": loaded.model,
        "device": loaded.device,
        "finish_reason": reason,
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "prefill_s": stats.prefill_s,
        "decode_tokens_per_s": stats.decode_tokens_per_s,
        "slowdown_target_pct": stats.slowdown_target_pct,
        "slowdown_measured_pct": stats.slowdown_measured_pct,
        "k_chunk": msgspec.to_builtins(stats.k_chunk),
        "dropped_messages": dropped_messages,
    }
