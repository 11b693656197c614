"""The sampler against transformers' own logits processors, and against counting."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from runtime.errors import DecdecError
from runtime.generation.sampler import Sampler, candidates
from runtime.generation.settings import SamplingSettings

VOCAB = 1000
OFF = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}


def reference(logits: torch.Tensor, s: SamplingSettings, seen: list[int]) -> torch.Tensor:
    """Probabilities [vocab] after transformers' processors in transformers' order."""
    steps = LogitsProcessorList()
    if s.repetition_penalty != 1.0:
        steps.append(RepetitionPenaltyLogitsProcessor(s.repetition_penalty))
    if s.temperature != 1.0:
        steps.append(TemperatureLogitsWarper(s.temperature))
    if s.top_k:
        steps.append(TopKLogitsWarper(s.top_k))
    if s.top_p < 1.0:
        steps.append(TopPLogitsWarper(s.top_p))
    if s.min_p:
        steps.append(MinPLogitsWarper(s.min_p))
    return torch.softmax(steps(torch.tensor([seen]), logits[None].clone())[0], dim=-1)


def ours(logits: torch.Tensor, s: SamplingSettings, seen: list[int]) -> torch.Tensor:
    ids, probabilities = candidates(Sampler(s, seen)._penalised(logits), s)
    full = torch.zeros(len(logits))
    full[torch.arange(len(logits)) if ids is None else ids] = probabilities
    return full / full.sum()


@pytest.mark.parametrize("scale", [0.3, 3.0, 12.0])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"temperature": 0.6},
        {"top_k": 40},
        {"top_k": 5000},
        {"top_p": 0.9},
        {"top_p": 0.0001},
        {"top_p": 0.999},
        {"min_p": 0.05},
        {"temperature": 1.7, "top_k": 50, "top_p": 0.8, "min_p": 0.02, "repetition_penalty": 1.3},
        {"repetition_penalty": 0.8, "top_p": 0.95},
    ],
)
def test_distribution_equals_transformers(scale, change):
    settings = SamplingSettings(**{**OFF, **change})
    for seed in range(5):
        logits = torch.randn(VOCAB, generator=torch.Generator().manual_seed(seed)) * scale
        seen = [1, 5, 5, int(logits.argmax())]
        expected, found = reference(logits, settings, seen), ours(logits, settings, seen)
        assert torch.equal(expected > 0, found > 0) or abs(int((expected > 0).sum() - (found > 0).sum())) <= 1
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-3)


@pytest.mark.parametrize("size", [3000, 9000])
def test_flat_distributions_need_more_than_the_first_head(size):
    settings = SamplingSettings(temperature=1.0, top_p=0.97)
    logits = torch.randn(size, generator=torch.Generator().manual_seed(1)) * 0.1
    torch.testing.assert_close(
        ours(logits, settings, []), reference(logits, settings, [0]), atol=1e-6, rtol=1e-2
    )


def test_draws_follow_the_distribution():
    settings = SamplingSettings(temperature=1.0, top_p=0.9, seed=1)
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, -9.0])
    expected = reference(logits, settings, [0])
    sampler = Sampler(settings)
    counts = torch.bincount(torch.tensor([sampler.pick(logits) for _ in range(4000)]), minlength=5)
    assert counts[expected == 0].sum() == 0
    assert ((counts / 4000 - expected).abs() < 0.03).all()


@pytest.mark.parametrize(
    "settings",
    [SamplingSettings(temperature=1.0, top_p=1.0), SamplingSettings(temperature=0.7, top_k=20)],
)
def test_seed_repeats_and_no_seed_does_not(settings):
    logits = torch.randn(VOCAB)

    def run(seed: int | None) -> list[int]:
        s = SamplingSettings(settings.temperature, settings.top_p, settings.top_k, seed=seed)
        sampler = Sampler(s)
        return [sampler.pick(logits) for _ in range(30)]

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert run(None) != run(None)
    assert run(-3) == run(-3)
    assert run(1 << 80) == run(1 << 80)


def test_greedy_and_repetition_penalty_over_time():
    logits = torch.tensor([1.0, 3.0, 2.9, -1.0])
    original = logits.clone()
    sampler = Sampler(SamplingSettings(temperature=0.0, repetition_penalty=1.2))
    assert [sampler.pick(logits) for _ in range(3)] == [1, 2, 1]
    assert torch.equal(logits, original)
    assert Sampler(SamplingSettings(temperature=0.0)).pick(logits) == 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_non_finite_logits_do_not_kill(temperature):
    sampler = Sampler(SamplingSettings(temperature=temperature, top_p=0.9))
    assert sampler.pick(torch.tensor([0.0, float("nan"), 5.0])) == 2
    assert sampler.pick(torch.tensor([-float("inf"), 2.0, -float("inf")])) == 1
    assert sampler.pick(torch.tensor([float("nan"), -float("inf"), -1e38])) == 2


@pytest.mark.parametrize("top", [{"top_p": 0.9}, {"top_p": 1.0}, {"top_k": 2}, {"min_p": 1.0}])
@pytest.mark.parametrize("temperature", [0.0, 1e-40, 1.0, 100.0])
def test_without_a_score_that_is_a_number_nothing_is_made_up(temperature, top):
    sampler = Sampler(SamplingSettings(temperature=temperature, repetition_penalty=1.1, **top), [1])
    for scores in ([float("nan")] * 4, [-float("inf")] * 4, [float("nan"), -float("inf")] * 2):
        with pytest.raises(DecdecError, match="no score of the next token is a number"):
            sampler.pick(torch.tensor(scores))
