"""Prompts, statistics and recording."""

import pytest
import torch

from runtime.calibration import InputStatistics, bucket_profile, calibrate, prompts, token_batches
from runtime.calibration.collect import SINK_TOKENS
from runtime.errors import Interrupted
from runtime.layers.base import LINEAR_KINDS
from runtime.model.build import build_dense
from runtime.progress import JobContext
from tests.runtime.model.tiny import tiny_model


@pytest.fixture(scope="module")
def decoder():
    return build_dense(tiny_model("llama")[1])


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


def test_every_linear_is_heard_and_left_as_it_was(decoder):
    originals = [dict(block.linears) for block in decoder.blocks]
    batches = [torch.arange(2, 12), torch.arange(30, 35)]
    statistics = calibrate(decoder, batches, JobContext.silent())
    assert [dict(block.linears) for block in decoder.blocks] == originals
    for block, spec in zip(statistics, decoder.blocks, strict=True):
        for kind in LINEAR_KINDS:
            assert block[kind].tokens == 15 - 2 * SINK_TOKENS
            assert block[kind].profile.shape == (spec.linears[kind].n_in,)
            assert block[kind].profile[0] > 0


def test_first_block_hears_the_normed_embedding(decoder):
    tokens = torch.tensor([5, 6, 7])
    profile = bucket_profile(decoder, [tokens], JobContext.silent())
    h = decoder.embed(tokens)
    x = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + decoder.spec.norm_eps)
    x = (x * decoder.blocks[0].norms.attention)[SINK_TOKENS:]
    expected = x.abs().sort(dim=1, descending=True).values.amax(0)
    torch.testing.assert_close(profile[0]["qkv"], expected)


def test_stopping_restores_the_linears(decoder):
    originals = [dict(block.linears) for block in decoder.blocks]
    with pytest.raises(Interrupted):
        calibrate(decoder, [torch.arange(4)], JobContext("x", lambda event: None, lambda: True))
    assert [dict(block.linears) for block in decoder.blocks] == originals
