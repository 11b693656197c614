"""All that a choice on the device needs, for tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.gpu.sampling.choose import SamplerScratch, choose_token, new_sampler_scratch
from kernels.gpu.sampling.state import SamplerState, new_sampler_state
from kernels.gpu.step_state import StepState, new_step_state
from runtime.generation.settings import SamplingSettings

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
CONTEXT = 5000
# Draws from the whole vocabulary.
OFF = SamplingSettings(temperature=1.0, top_p=1.0, seed=5)
GREEDY = SamplingSettings(temperature=0.0)


@dataclass(frozen=True, slots=True)
class Choosing:
    """State, settings and scratch of one vocabulary."""

    state: StepState
    sampler: SamplerState
    scratch: SamplerScratch

    def pick(self, logits: torch.Tensor, position: int) -> int:
        """The token chosen after `position`."""
        self.state.place(position, 0)
        choose_token(logits.to(DEVICE)[None], self.state, self.sampler, self.scratch)
        assert int(self.state.position) == position + 1
        assert int(self.state.answers[position + 1]) == int(self.state.token)
        return int(self.state.token)


def choosing(vocab: int, settings: SamplingSettings, seen=(), **options) -> Choosing:
    """For `vocab` tokens; `options` are those of the scratch."""
    sampler = new_sampler_state(vocab, DEVICE)
    sampler.set(settings, seen=seen)
    return Choosing(new_step_state(CONTEXT, DEVICE), sampler, new_sampler_scratch(vocab, DEVICE, **options))


def random_logits(vocab: int, scale: float, seed: int = 0) -> torch.Tensor:
    """Normally distributed, float32 [vocab]."""
    return torch.randn(vocab, generator=torch.Generator().manual_seed(seed)) * scale
