"""Which sampling settings are in force: asked for, else the model's own, else cautious ones.

Small models at low bits say wrong things at the temperatures that large ones are used with, and greedily they
fall into loops; FALLBACK stays near the most likely answer and out of the loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from runtime.protocol.commands import Sampling
from runtime.text import files


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """All settings resolved. temperature 0: greedy; top_k 0, top_p 1, min_p 0, penalty 1: off."""

    temperature: float = 0.0
    top_p: float = 0.9
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None


FALLBACK = SamplingSettings(temperature=0.2, repetition_penalty=1.1)
# Somebody who asks for greedy decoding wants the largest logit and nothing else.
GREEDY = SamplingSettings()
_FIELDS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
_SAYS_SAMPLE = ("temperature", "top_p", "top_k")
# What generation_config.json means by silence, once it says that the model is to be sampled from.
_SAMPLED = {"temperature": 1.0, "top_p": 1.0, "top_k": 50, "repetition_penalty": 1.0}


def model_defaults(folder: Path) -> Sampling:
    """What generation_config.json says; a value out of range is as good as none."""
    config = files.read_object(folder / "generation_config.json")
    if config.get("do_sample") is False:
        config = {"repetition_penalty": 1.0, **config, "temperature": 0.0}
    elif config.get("do_sample") is True or any(config.get(name) is not None for name in _SAYS_SAMPLE):
        config = {**_SAMPLED, **config}
    found: dict[str, Any] = {}
    for name in _FIELDS:
        try:
            msgspec.convert({name: config.get(name)}, Sampling)
        except msgspec.ValidationError:
            continue
        found[name] = config.get(name)
    return Sampling(**found)


def resolve(asked: Sampling, defaults: Sampling) -> SamplingSettings:
    """`asked` before `defaults` before FALLBACK, field by field; greedy where temperature 0 is asked for."""
    fallback = GREEDY if asked.temperature == 0 else FALLBACK

    def first(name: str) -> Any:
        values = (getattr(asked, name), getattr(defaults, name), getattr(fallback, name))
        return next(value for value in values if value is not None)

    return SamplingSettings(**{name: first(name) for name in _FIELDS}, seed=asked.seed)
