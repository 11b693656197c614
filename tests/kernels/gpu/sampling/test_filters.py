"""What the filters keep on the device, against the CPU's sampler with the same noise: token for token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.gpu.chaining import launch_chained
from kernels.gpu.sampling import choose
from tests.kernels.gpu.sampling.choosing import CUDA, OFF, choosing, random_logits
from tests.kernels.gpu.sampling.reference import choice, kept, noise

FILTERS = [
    {},
    {"temperature": 0.4},
    {"top_k": 50},
    {"top_k": 5000},
    {"top_p": 0.9},
    {"top_p": 0.0},
    {"top_p": 0.999},
    {"min_p": 0.05},
    {"min_p": 1.0},
    {"temperature": 1.7, "top_k": 50, "top_p": 0.8, "min_p": 0.02},
    {"top_k": 400, "top_p": 0.97},
]
# Positions at which other tokens come first: the more, the finer is what the filters keep compared.
POSITIONS = range(200) if CUDA else range(2)


@pytest.mark.parametrize(("scale", "options"), [(0.2, {}), (3.0, {"tile": 256, "listed": 8})])
@pytest.mark.parametrize("change", FILTERS)
def test_chooses_what_the_cpu_keeps(change, scale, options):
    """Flat and steep logits, long and short lists: where a list is not enough the vocabulary decides."""
    settings = replace(OFF, **change)
    logits = random_logits(503, scale)
    device = choosing(503, settings, **options)
    for position in POSITIONS:
        assert device.pick(logits, position) == choice(logits, settings, position)


def position_of(token: int, weights: np.ndarray) -> int:
    """Where this token is drawn, were there no filters."""
    ids = np.arange(len(weights))
    return next(p for p in range(4999) if np.argmax(weights / noise(OFF.seed, ids, p)) == token)


@pytest.mark.parametrize(
    "change",
    [
        *({"top_k": k} for k in (1, 7, 20, 31)),
        *({"top_p": p} for p in (0.05, 0.1, 0.3, 0.6)),
        {"min_p": 0.3},
        {"top_k": 40, "top_p": 0.5},
        {"top_k": 200, "top_p": 0.1},
    ],
)
def test_the_last_token_kept_and_the_first_left_out(change):
    settings = replace(OFF, **change)
    logits = random_logits(300, 1.0)
    count = len(kept(logits, settings)[0])
    order = logits.argsort(descending=True).tolist()
    device = choosing(300, settings)
    for rank in (count - 1, count):
        position = position_of(order[rank], logits.double().exp().numpy())
        picked = device.pick(logits, position)
        assert picked == choice(logits, settings, position)
        assert (picked == order[rank]) == (rank < count)


@pytest.mark.parametrize(
    "change",
    [
        {"top_k": 50},
        {"top_p": 0.9},
        {"min_p": 0.01},
        {"top_k": 30, "top_p": 0.8},
        {"temperature": 0.3, "top_p": 1 - 1e-6, "min_p": 0.01},
    ],
)
def test_lists_are_enough_for_what_a_model_says(change, monkeypatch):
    """Without the whole vocabulary, which takes long to search, the choice is the same."""
    settings = replace(OFF, **change)
    logits = random_logits(5003, 1.0) * 4
    device = choosing(5003, settings)

    def forgetful(kernel, *args, **options):
        if kernel is choose.draw_kernel:
            device.scratch.keys.zero_()
        launch_chained(kernel, *args, **options)

    monkeypatch.setattr(choose, "launch_chained", forgetful)
    for position in POSITIONS:
        assert device.pick(logits, position) == choice(logits, settings, position)


@pytest.mark.parametrize(("vocab", "change"), [(1500, {}), (49152, {}), (9001, {"top_p": 0.9})])
def test_vocabularies_of_many_tiles(vocab, change):
    settings = replace(OFF, **change)
    logits = random_logits(vocab, 2.0)
    assert choosing(vocab, settings).pick(logits, 3) == choice(logits, settings, 3)


@pytest.mark.parametrize(
    ("change", "count"), [({"top_k": 3}, 3), ({"top_p": 0.0125}, 5), ({"top_k": 100, "top_p": 0.25}, 25)]
)
def test_of_tied_tokens_the_first_are_kept(change, count):
    """All 400 are alike: lists of 4 cannot hold them, and they are told apart by their ids."""
    device = choosing(400, replace(OFF, **change), listed=4)
    for last in (count - 1, count):
        position = position_of(last, np.ones(last + 1))
        expected = int(noise(OFF.seed, np.arange(count), position).argmin())
        assert device.pick(torch.zeros(400), position) == expected


def test_masked_tokens_are_never_chosen():
    logits = torch.full((300,), -float("inf"))
    logits[[7, 290]] = torch.tensor([1.0, 1.5])
    for settings in (OFF, replace(OFF, top_p=0.99), replace(OFF, top_k=10), replace(OFF, min_p=0.1)):
        device = choosing(300, settings)
        for position in range(3):
            assert device.pick(logits, position) == choice(logits, settings, position)


@pytest.mark.parametrize("shift", [0.0, -20.0])
def test_the_penalty_is_that_of_the_cpu_and_only_for_seen_tokens(shift):
    logits = random_logits(400, 3.0) + shift
    seen = [int(logits.argmax()), 3, 399, int(logits.argmin())]
    for change in (
        {"repetition_penalty": 1.3, "top_k": 5},
        {"repetition_penalty": 0.8},
        {"temperature": 0.0, "repetition_penalty": 3.0},
    ):
        settings = replace(OFF, **change)
        device = choosing(400, settings, seen)
        for position in range(3):
            assert device.pick(logits, position) == choice(logits, settings, position, seen)


@pytest.mark.parametrize(
    "change",
    [{}, {"top_p": 0.8}, {"top_k": 6, "temperature": 1.5}, {"min_p": 0.2, "repetition_penalty": 1.5}],
)
def test_draws_follow_the_probabilities(change):
    """Chi-square within the 0.999 quantile of 11 degrees; few draws without a GPU, where each takes long."""
    settings, seen = replace(OFF, **change), [0, 5]
    logits = random_logits(12, 1.0, seed=3)
    ids, chances = kept(logits, settings, seen)
    device = choosing(12, settings, seen, tile=16, listed=16)
    draws = 4000 if CUDA else 30
    found = np.bincount([device.pick(logits, position) for position in range(draws)], minlength=12)
    assert found.sum() == found[ids].sum()
    assert ((found[ids] - draws * chances) ** 2 / (draws * chances)).sum() < 31.3
