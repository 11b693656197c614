"""Prompts and statistics."""

import pytest
import torch

from runtime.calibration import InputStatistics, prompts, token_batches


def test_prompts_are_many_different_and_mixed():
    found = prompts()
    assert len(found) >= 120
    assert len(set(found)) == len(found)
    assert all(len(prompt) > 20 and "%%" not in prompt for prompt in found)
    assert any("def " in prompt for prompt in found[:10])
    assert any(ord(character) > 0x3000 for prompt in found for character in prompt)


def test_batches_stop_at_the_limit_and_keep_order():
    whole = token_batches(lambda text: list(text.encode()))
    assert max(map(len, whole)) <= 512
    some = token_batches(lambda text: list(text.encode()), limit=1000)
    assert sum(map(len, some)) == 1000
    assert torch.equal(some[0], whole[0])


def test_profile_is_the_maximum_of_sorted_magnitudes_per_chunk():
    x = torch.randn(7, 1100, generator=torch.Generator().manual_seed(0))
    statistics = InputStatistics(1100)
    statistics.add(x[:3])
    statistics.add(x[3:])
    for start, stop in ((0, 1024), (1024, 1100)):
        ranked = [sorted((abs(v) for v in row[start:stop].tolist()), reverse=True) for row in x]
        expected = [max(column) for column in zip(*ranked, strict=True)]
        assert statistics.profile[start:stop].tolist() == pytest.approx(expected)
    torch.testing.assert_close(statistics.mean_square, x.square().mean(0))
    assert statistics.tokens == 7


def test_tokens_that_are_not_finite_are_left_out():
    statistics = InputStatistics(2)
    statistics.add(torch.tensor([[1.0, 2.0], [float("nan"), 9.0], [float("inf"), 9.0]]))
    assert statistics.profile.tolist() == [2.0, 1.0]
    assert statistics.tokens == 1
