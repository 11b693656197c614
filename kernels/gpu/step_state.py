"""Where a decode step stands: which token it computes at which position, and what was answered so far.

Position and token live in device memory, so one captured step serves every token; answers are written by the
device into page-locked host memory, where the host reads them without asking the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

# Token and position lie 16 bytes apart: kernels are compiled once, for aligned pointers.
_WORDS = 8
_TOKEN = 4
NO_ANSWER = -1


@dataclass(frozen=True, slots=True)
class StepState:
    """State that the kernels of a step share.

    words: int32 [8] on the device, of which `position` and `token` are views. answers: int32 [context + 1],
    page-locked host memory for a GPU: answers[p] is the token at position p, or NO_ANSWER where no logit was
    a number above -infinity; the state then goes on with any token.
    """

    words: Tensor
    answers: Tensor

    def __post_init__(self) -> None:
        if self.words.dtype != torch.int32 or self.words.shape != (_WORDS,):
            raise ValueError(f"state of {list(self.words.shape)} {self.words.dtype}, not int32 [{_WORDS}]")
        if self.answers.dtype != torch.int32 or self.answers.dim() != 1 or len(self.answers) < 2:
            raise ValueError(f"answers of {list(self.answers.shape)} {self.answers.dtype} cannot be written")

    @property
    def position(self) -> Tensor:
        """int32 [1]: tokens in the KV cache, and so the place of the token that is computed now."""
        return self.words[:1]

    @property
    def token(self) -> Tensor:
        """int32 [1]: the token to compute at `position`."""
        return self.words[_TOKEN : _TOKEN + 1]

    @property
    def context(self) -> int:
        """How many tokens the KV cache takes."""
        return len(self.answers) - 1

    def place(self, position: int, token: int) -> None:
        """Let the next step compute `token` at `position`. ValueError where the cache has no such place."""
        if not 0 <= position < self.context:
            raise ValueError(f"position {position} is not within a context of {self.context}")
        words = torch.zeros(_WORDS, dtype=torch.int32)
        words[0], words[_TOKEN] = position, token
        self.words.copy_(words)

    def stay_inside(self) -> None:
        """Step back from the end of a full context, where no step has a place, in the order of the stream."""
        self.position.clamp_(max=self.context - 1)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Position and token are afterwards what they were before: for steps that are only timed.

        Copies on the device, in the order of the stream: nothing waits. Answers behind the position change.
        """
        before = self.words.clone()
        try:
            yield
        finally:
            self.words.copy_(before)


def new_step_state(context: int, device: torch.device) -> StepState:
    """State for a KV cache of `context` tokens, at position 0. ValueError for a context of none."""
    if context < 1:
        raise ValueError(f"a context of {context} tokens holds no answer")
    answers = torch.zeros(context + 1, dtype=torch.int32, pin_memory=device.type == "cuda")
    return StepState(torch.zeros(_WORDS, dtype=torch.int32, device=device), answers)
