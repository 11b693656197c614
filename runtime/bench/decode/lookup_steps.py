"""Prompt lookup decoding replayed over finished answers: what it would have guessed, and what that is worth.

The last tokens are looked for in the text before them; what followed there is the draft, and a step computes
it together with the next token. Drafts are right where the answer says so: with greedy decoding exactly, with
sampling as often as on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# Vectors that a product takes at once.
BATCHES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Lookup:
    """How drafts are made: up to `draft` tokens that followed the latest place where the last `longest`, or
    fewer down to `shortest`, tokens stood before.
    """

    draft: int
    longest: int = 3
    shortest: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.draft < BATCHES[-1]:
            raise ValueError(f"a step takes drafts of 1 to {BATCHES[-1] - 1} tokens, not {self.draft}")
        if not 0 < self.shortest <= self.longest:
            raise ValueError(f"no sequences of {self.shortest} to {self.longest} tokens can be looked for")


@dataclass(slots=True)
class Places:
    """A text that grows, and where in it every short sequence stood last."""

    lookup: Lookup
    tokens: list[int] = field(default_factory=list)
    _after: dict[tuple[int, ...], int] = field(default_factory=dict)

    def append(self, token: int) -> None:
        """The sequences that end before this token are now places with a continuation."""
        for n in self._lengths():
            self._after[tuple(self.tokens[-n:])] = len(self.tokens)
        self.tokens.append(token)

    def draft(self) -> list[int]:
        """Tokens that followed the longest sequence found; none where nothing is."""
        for n in self._lengths():
            place = self._after.get(tuple(self.tokens[-n:]))
            if place is not None:
                return self.tokens[place : place + self.lookup.draft]
        return []

    def _lengths(self) -> range:
        longest = min(self.lookup.longest, len(self.tokens))
        return range(longest, self.lookup.shortest - 1, -1)


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step: tokens guessed, and how many of them from the first on were right."""

    drafted: int
    accepted: int

    @property
    def vectors(self) -> int:
        """Vectors its products take: the next token's and the draft's, filled up."""
        return next(batch for batch in BATCHES if batch > self.drafted)


def steps(prompt: Sequence[int], answer: Sequence[int], lookup: Lookup) -> Iterator[Step]:
    """The steps that an answer takes; the first token comes with the prompt."""
    places = Places(lookup)
    for token in (*prompt, *answer[:1]):
        places.append(token)
    at = 1
    while at < len(answer):
        draft = places.draft()
        right = min(_agreeing(draft, answer[at:]), len(answer) - at - 1)
        yield Step(len(draft), right)
        for token in answer[at : at + right + 1]:
            places.append(token)
        at += right + 1


def _agreeing(draft: Iterable[int], answer: Sequence[int]) -> int:
    """How many tokens from the first on are the same."""
    count = 0
    for guess, token in zip(draft, answer, strict=False):
        if guess != token:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Worth:
    """Many steps together. cost: time of a step by its vectors, over one of one vector."""

    taken: tuple[Step, ...]
    cost: Mapping[int, float]

    @property
    def tokens(self) -> int:
        """What came of the steps: in each the accepted draft and one token more."""
        return sum(step.accepted + 1 for step in self.taken)

    @property
    def accepted_per_step(self) -> float:
        """Mean over all steps, those without a draft too."""
        return sum(step.accepted for step in self.taken) / len(self.taken)

    @property
    def drafted_share(self) -> float:
        """Share of steps that had a draft."""
        return sum(step.drafted > 0 for step in self.taken) / len(self.taken)

    @property
    def accepted_share(self) -> float:
        """Share of drafted tokens that were right."""
        drafted = sum(step.drafted for step in self.taken)
        return sum(step.accepted for step in self.taken) / drafted if drafted else 0.0

    @property
    def even_cost(self) -> float:
        """What a step with a draft may cost on average before lookup stops to pay."""
        drafted = sum(step.drafted > 0 for step in self.taken)
        return 1 + sum(step.accepted for step in self.taken) / drafted if drafted else 1.0

    @property
    def speed(self) -> float:
        """Tokens a second over those of steps of one token."""
        return self.tokens / sum(self.cost[step.vectors] for step in self.taken)
