"""Next token from logits. Filters in transformers' order: penalty, temperature, top-k, top-p, min-p.

The vocabulary is sorted only for very flat distributions: top-p looks at the likeliest 256 tokens first, then
at 4096.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from runtime.generation.engine import unusable_scores
from runtime.generation.settings import SamplingSettings

HEADS = (256, 4096)


class Sampler:
    """State of one answer: the random generator, and the tokens a repetition penalty knows."""

    def __init__(self, settings: SamplingSettings, seen: Iterable[int] = ()) -> None:
        self._settings = settings
        self._generator = torch.Generator()
        if settings.seed is None:
            self._generator.seed()
        else:
            # torch takes 64 bits: a longer seed is folded rather than refused.
            self._generator.manual_seed(settings.seed % (1 << 63))
        self._seen = _Seen(seen) if settings.repetition_penalty != 1.0 else None

    def pick(self, logits: torch.Tensor) -> int:
        """The next token from float32 logits [vocab] on any device.

        What is not a number is never chosen; DecdecError where nothing else is there.
        """
        scores = self._penalised(logits)
        token = _greedy(scores) if self._settings.temperature == 0 else self._draw(scores)
        if self._seen is not None:
            self._seen.add(token)
        return token

    def _draw(self, scores: torch.Tensor) -> int:
        ids, probabilities = candidates(scores, self._settings)
        mass = probabilities.cumsum(-1)
        total = float(mass[-1])
        if not 0 < total < float("inf"):
            return _greedy(scores)
        point = mass.new_tensor([float(torch.rand((), generator=self._generator)) * total])
        at = min(int(torch.searchsorted(mass, point, right=True)), len(mass) - 1)
        return at if ids is None else int(ids[at])

    def _penalised(self, logits: torch.Tensor) -> torch.Tensor:
        if self._seen is None:
            return logits
        seen, penalty = self._seen.ids(logits), self._settings.repetition_penalty
        found = logits[seen]
        return logits.index_copy(0, seen, torch.where(found < 0, found * penalty, found / penalty))


class _Seen:
    """Distinct token ids as a tensor that grows: touching only them is far cheaper than a vocabulary mask."""

    def __init__(self, tokens: Iterable[int]) -> None:
        self._set = set(tokens)
        self._ids: torch.Tensor | None = None
        self._count = 0

    def ids(self, logits: torch.Tensor) -> torch.Tensor:
        """The ids [n], int64, where the logits are."""
        if self._ids is None:
            self._ids = torch.empty(len(logits), dtype=torch.int64, device=logits.device)
            self._count = len(self._set)
            self._ids[: self._count] = torch.tensor(sorted(self._set), dtype=torch.int64)
        return self._ids[: self._count]

    def add(self, token: int) -> None:
        """Note a token; known ones cost nothing."""
        if token not in self._set and self._ids is not None:
            self._ids[self._count] = token
            self._count += 1
        self._set.add(token)


def candidates(scores: torch.Tensor, s: SamplingSettings) -> tuple[torch.Tensor | None, torch.Tensor]:
    """What may be drawn from scores [vocab], temperature above 0: ids and unnormalised probabilities [n].

    Ids are None when every token of the vocabulary stays a candidate, in its own order.
    """
    scores = scores / s.temperature
    if not s.top_k and s.top_p >= 1.0:
        probabilities = torch.softmax(scores, dim=-1)
        if s.min_p:
            probabilities = probabilities * (probabilities >= s.min_p * probabilities.max())
        return None, probabilities
    ids, probabilities = _top_k(scores, s.top_k) if s.top_k else _head(scores, s.top_p)
    # Sorted, so what both filters keep is a beginning; the likeliest token always stays.
    kept = probabilities >= s.min_p * probabilities[0]
    if s.top_p < 1.0:
        kept &= probabilities.cumsum(-1) - probabilities < s.top_p
    count = max(1, int(kept.sum()))
    return ids[:count], probabilities[:count]


def _top_k(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, ids = scores.topk(min(k, len(scores)))
    return ids, torch.softmax(values, dim=-1)


def _head(scores: torch.Tensor, mass: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The likeliest tokens, descending, until their probabilities sum to `mass`."""
    total = scores.logsumexp(-1)
    for size in HEADS:
        values, ids = scores.topk(min(size, len(scores)))
        probabilities = (values - total).exp()
        if float(probabilities.sum()) >= mass:
            return ids, probabilities
    values, ids = scores.sort(descending=True)
    return ids, (values - total).exp()


def _greedy(scores: torch.Tensor) -> int:
    best = int(scores.argmax())
    if bool(scores[best] > -torch.inf):
        return best
    numbers = scores.masked_fill(scores.isnan(), -torch.inf)
    best = int(numbers.argmax())
    if bool(numbers[best] > -torch.inf):
        return best
    raise unusable_scores()
