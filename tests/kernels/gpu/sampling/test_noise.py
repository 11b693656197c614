"""Order and noise of the sampling kernels against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from kernels.gpu.primitives import launch
from kernels.gpu.sampling.primitives import exponential, key_of, score_of
from kernels.gpu.sampling.state import new_sampler_state
from runtime.generation.settings import SamplingSettings
from tests.kernels.gpu.sampling.reference import noise, philox

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
COUNT = 4096


@triton.jit
def _noise_kernel(
    settings: tl.tensor, position: tl.tensor, out: tl.tensor, COUNT: tl.constexpr, ASM: tl.constexpr
) -> None:
    ids = tl.arange(0, COUNT)
    tl.store(out + ids, exponential(settings, tl.load(position), ids))


@triton.jit
def _key_kernel(
    scores: tl.tensor, keys: tl.tensor, back: tl.tensor, COUNT: tl.constexpr, ASM: tl.constexpr
) -> None:
    at = tl.arange(0, COUNT)
    found = key_of(tl.load(scores + at))
    tl.store(keys + at, found)
    tl.store(back + at, score_of(found))


def _noise(seed, position):
    sampler = new_sampler_state(8, DEVICE)
    sampler.set(SamplingSettings(temperature=1.0, seed=seed))
    place = torch.tensor([position], dtype=torch.int32, device=DEVICE)
    out = torch.empty(COUNT, device=DEVICE)
    launch(_noise_kernel, (1,), sampler.settings, place, out, COUNT=COUNT)
    return out.cpu().numpy()


def test_the_reference_knows_philox():
    """https://github.com/DEShawResearch/random123, kat_vectors: a counter and key of zeros."""
    assert philox(0, np.zeros(1), 0)[0] == 0x6627E8D5


@pytest.mark.parametrize(("seed", "position"), [(0, 0), (7, 1), ((1 << 63) + 5, 70_000)])
def test_noise_is_philox_by_seed_position_and_id(seed, position):
    found, expected = _noise(seed, position), noise(seed, np.arange(COUNT), position)
    # Draws far above the mean never decide, and are coarse.
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    np.testing.assert_allclose(found[expected < 2], expected[expected < 2], rtol=5e-5)


def test_draws_follow_the_weights_and_differ_by_position():
    """The reference, which the kernels are compared with, over many positions: chi-square with 9 degrees."""
    weights = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])
    draws = 20_000
    for seed in (1, 2):
        picks = [np.argmax(weights / noise(seed, np.arange(10) * 977, at)) for at in range(draws)]
        found = np.bincount(picks, minlength=10)
        assert ((found - draws * weights) ** 2 / (draws * weights)).sum() < 27.9
        after_most_likely = np.bincount(np.array(picks)[1:][np.array(picks)[:-1] == 0], minlength=10)
        expected = after_most_likely.sum() * weights
        assert ((after_most_likely - expected) ** 2 / expected).sum() < 27.9


def test_keys_are_ordered_as_scores_are():
    special = [float("-inf"), -3.4e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, 3.4e38, float("inf")]
    scores = torch.tensor([*special, float("nan"), *([0.5] * 5)], device=DEVICE)
    keys = torch.empty(16, dtype=torch.int32, device=DEVICE)
    back = torch.empty(16, device=DEVICE)
    launch(_key_kernel, (1,), scores, keys, back, COUNT=16)
    found = keys.tolist()
    assert found[:4] == sorted(set(found[:4]))
    assert found[3] < found[4] == found[5] < found[6]
    assert found[5:10] == sorted(set(found[5:10]))
    assert found[10] == found[0]
    assert torch.equal(back[:10].cpu(), scores[:10].cpu())
