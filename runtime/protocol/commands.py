"""Commands the front end sends to the worker."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runtime.errors import DecdecError
from runtime.protocol.bases import DEFAULT, METHODS, BaseSpec
from runtime.protocol.quality import Quality

Role = Literal["system", "user", "assistant"]
MAX_SLOWDOWN_PCT = 20.0
LOSSLESS = "int8"
KV_BITS = (8, 16)


def _check(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, not {value}")


def _check_base(name: str) -> None:
    try:
        BaseSpec.parse(name)
    except DecdecError as error:
        raise ValueError(error.sentence) from error


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    role: Role
    content: str


class Sampling(msgspec.Struct, frozen=True):
    """Sampling settings; None means the model's own default (generation_config.json)."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0.0, 100.0)
        _check("top_p", self.top_p, 0.0, 1.0)
        _check("top_k", self.top_k, 0, 1 << 30)
        _check("min_p", self.min_p, 0.0, 1.0)
        _check("repetition_penalty", self.repetition_penalty, 0.01, 100.0)


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Bring a prepared model into memory. `base`: a low-bit base, or "int8": the lossless layers only.

    `context`: tokens, None: what model and memory allow. `prompt_correction`: correct every channel of the
    prompt too. `kv_bits`: of the KV cache on a GPU, 8 or 16; the CPU's cache stays as it is.
    """

    model: str
    base: str = DEFAULT.name
    context: int | None = None
    prompt_correction: bool = True
    kv_bits: int = 16

    def __post_init__(self) -> None:
        if self.base != LOSSLESS:
            _check_base(self.base)
        if self.context is not None and self.context < 2:
            raise ValueError(f"a context has at least 2 tokens, not {self.context}")
        if self.kv_bits not in KV_BITS:
            raise ValueError(f"kv_bits must be 8 or 16, not {self.kv_bits}")


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Fetch a model from its source and make every file a chat needs; does nothing if all is there.

    `quality`: of the INT8 form; None takes what is there, and the balanced preset for a new model.
    `bases`: low-bit bases to have, by name; with `fit` by method alone, and bits are chosen such that
    linears, head and norms take at most so many bytes. `base_from`: an AWQ or GPTQ checkpoint of the same
    model, whose weights become the base "packed4". `continuations`: calibrate on the model's own
    continuations of the prompts too.
    """

    model: str
    name: str | None = None
    quality: Quality | None = None
    bases: tuple[str, ...] = (DEFAULT.name,)
    fit: int | None = None
    base_from: str | None = None
    continuations: bool = False

    def __post_init__(self) -> None:
        for base in self.bases:
            if self.fit is None:
                _check_base(base)
            elif base not in METHODS:
                raise ValueError(f"with a size a base is named by its method, not {base!r}")


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    """Answer a conversation whose last message is the user's, or go on with the answer it ends with."""

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """End the running generation or job at its next safe point (one token for a generation)."""


class SetSlowdown(msgspec.Struct, frozen=True, tag="set_slowdown"):
    """Move the slider; takes effect at the next token. `lossless` is the stop beyond its right end."""

    pct: float
    lossless: bool = False

    def __post_init__(self) -> None:
        _check("pct", self.pct, 0.0, MAX_SLOWDOWN_PCT)


class Tune(msgspec.Struct, frozen=True, tag="tune"):
    """Measure the device and store the k_chunk table of every slider position."""

    model: str
    base: str = DEFAULT.name

    def __post_init__(self) -> None:
        _check_base(self.base)


class Job(msgspec.Struct, frozen=True, tag="job"):
    """A one-shot piece of work of the command line (encode, verify, inspect, eval, doctor, …)."""

    name: str
    args: dict[str, Any] = {}


class Quit(msgspec.Struct, frozen=True, tag="quit"):
    """End the worker process."""


Command = Load | Prepare | Generate | Stop | SetSlowdown | Tune | Job | Quit
