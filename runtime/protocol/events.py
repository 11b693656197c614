"""Events the worker sends; the only stream that chat, one-shot command, server and benchmarks consume."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FinishReason = Literal["stop", "length", "context", "stopped"]


class KChunk(msgspec.Struct, frozen=True):
    """Corrected channels per 1024 input channels, by linear type."""

    qkv: int = 0
    o: int = 0
    gate_up: int = 0
    down: int = 0

    @property
    def total(self) -> int:
        """Sum over the four linear types."""
        return self.qkv + self.o + self.gate_up + self.down


class SlowdownPoint(msgspec.Struct, frozen=True):
    """One step of the tuned path: the table that is in force from `slowdown_pct` on."""

    slowdown_pct: float
    k_chunk: KChunk


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker is up and reads commands."""

    pid: int


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a long job is. `step` is short and stable ("download", "encode", "tune", …).

    `done`/`total` count `unit` (bytes, tensors, weights, tokens, points); total 0 means unknown.
    `rate` is units per second, `eta_s` seconds left; both None until known. `note` is a line for people.
    `data`: JSON of what was found since the report before, where a step finds anything worth showing.
    """

    job: str
    step: str
    done: int
    total: int
    unit: str
    rate: float | None = None
    eta_s: float | None = None
    note: str = ""
    data: dict[str, Any] | None = None


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """A model is in memory.

    `path` is empty and `untuned_reason` set when no valid profile exists: the slider is then disabled.
    `lossless` says whether the stop beyond the slider's right end is available. `note` is a sentence for
    people about what they would not expect.
    """

    model: str
    base: str
    device: str
    context_limit: int
    bytes_in_memory: int
    path: tuple[SlowdownPoint, ...] = ()
    untuned_reason: str = ""
    lossless: bool = False
    load_s: float = 0.0
    note: str = ""


class Token(msgspec.Struct, frozen=True, tag="token"):
    """Newly visible text; may be several tokens' worth, never half a character. `index`: tokens so far."""

    text: str
    index: int


class Stats(msgspec.Struct, frozen=True, tag="stats"):
    """State of the running generation, sent a few times a second and once at its end.

    `slowdown_measured_pct` is None until both base-only and corrected steps were timed.
    `corrections_left_out`: since loading, for inputs that were NaN or infinite.
    """

    decode_tokens_per_s: float
    prefill_s: float
    prompt_tokens: int
    reused_tokens: int
    completion_tokens: int
    context_used: int
    context_limit: int
    slowdown_target_pct: float
    slowdown_measured_pct: float | None
    k_chunk: KChunk
    channels_corrected: int = 0
    lossless: bool = False
    corrections_left_out: int = 0


class Done(msgspec.Struct, frozen=True, tag="done"):
    """A command finished. `job`: the command's tag or the job's name; `result`: its JSON document.

    For a generation the result holds text, finish_reason and the last Stats' figures, as `run --json` prints.
    """

    job: str
    result: dict[str, Any] = {}


class Failed(msgspec.Struct, frozen=True, tag="error"):
    """A command failed; the worker lives on. Fragments as in `runtime.errors.DecdecError`."""

    job: str
    what: str
    why: str = ""
    fix: str = ""
    code: int = 1


Event = Ready | Progress | Loaded | Token | Stats | Done | Failed
