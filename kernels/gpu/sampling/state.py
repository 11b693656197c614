"""Sampling settings in device memory: a captured step serves all of them."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

# Words of `SamplerState.settings`; the seed takes two.
INVERSE_TEMPERATURE, TOP_P, MIN_P, PENALTY, TOP_K, FIRST, SEED = range(7)
_LAYOUT = "<4f2iQ"
_WORDS = struct.calcsize(_LAYOUT) // 4
# Colder than this is greedy in float32, and its inverse is still finite.
_COLDEST = 1e-30


class SamplingValues(Protocol):
    """temperature 0: greedy; top_k 0, top_p 1, min_p 0, repetition_penalty 1: off; seed None: any."""

    @property
    def temperature(self) -> float: ...
    @property
    def top_p(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def min_p(self) -> float: ...
    @property
    def repetition_penalty(self) -> float: ...
    @property
    def seed(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class SamplerState:
    """What the sampling kernels read beside the logits.

    settings: int32 [8], by the constants above, floats by their bits; a temperature is kept inverted, 0 for
    greedy. seen: int8 [vocab], 1 for tokens that a repetition penalty makes less likely.
    """

    settings: Tensor
    seen: Tensor

    def __post_init__(self) -> None:
        if self.settings.dtype != torch.int32 or self.settings.shape != (_WORDS,):
            raise ValueError(f"settings are int32 [{_WORDS}], not {self.settings.dtype}")
        if self.seen.dtype != torch.int8 or self.seen.dim() != 1:
            raise ValueError(f"seen tokens are int8 [vocab], not {self.seen.dtype} {list(self.seen.shape)}")

    @property
    def vocab(self) -> int:
        """Tokens that can be chosen."""
        return len(self.seen)

    def set(self, values: SamplingValues, *, first: int = 0, seen: Iterable[int] = ()) -> None:
        """Use `values` from the next choice on, and forget which tokens were seen before, but for `seen`.

        A step marks the token that it computes as seen from position `first` on: where the answer begins.
        ValueError for a value out of its range or an id outside the vocabulary.
        """
        _check(values)
        ids = torch.tensor(sorted(set(seen)), dtype=torch.int64)
        if len(ids) and not 0 <= int(ids[0]) <= int(ids[-1]) < self.vocab:
            raise ValueError(f"token ids {int(ids[0])} to {int(ids[-1])} are not within {self.vocab}")
        self.settings.copy_(_words(values, first))
        self.seen.zero_()
        self.seen[ids.to(self.seen.device)] = 1


def new_sampler_state(vocab: int, device: torch.device) -> SamplerState:
    """Greedy choice and no token seen."""
    settings = torch.zeros(_WORDS, dtype=torch.int32, device=device)
    settings[PENALTY : PENALTY + 1].view(torch.float32).fill_(1.0)
    return SamplerState(settings, torch.zeros(vocab, dtype=torch.int8, device=device))


def _check(values: SamplingValues) -> None:
    if not 0 <= values.temperature < float("inf"):
        raise ValueError(f"a temperature of {values.temperature}")
    if not (0 <= values.top_p <= 1 and 0 <= values.min_p <= 1):
        raise ValueError(f"top_p {values.top_p} and min_p {values.min_p} lie between 0 and 1")
    if values.top_k < 0 or not 0 < values.repetition_penalty < float("inf"):
        raise ValueError(f"top_k {values.top_k} or repetition_penalty {values.repetition_penalty}")


def _words(values: SamplingValues, first: int) -> Tensor:
    seed = secrets.randbits(64) if values.seed is None else values.seed % (1 << 64)
    inverse = 1 / max(values.temperature, _COLDEST) if values.temperature else 0.0
    shares = values.top_p, values.min_p, values.repetition_penalty
    packed = struct.pack(_LAYOUT, inverse, *shares, min(values.top_k, (1 << 31) - 1), first, seed)
    return torch.frombuffer(bytearray(packed), dtype=torch.int32)
