"""Compiled coding against the plain reference, and both against known answers."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x import PAPER_LEVELS, best_levels, check_streams, decode, encode, reference
from kernels.int8x.levels import BLOCK, coded_bytes, level_counts
from kernels.int8x.limits import histogram

LEVEL_SETS = [(3, 5, 8), (5, 8), (4, 5, 8), (3, 4, 5, 8), (2, 4, 6, 8), (3, 4, 5, 6, 8), (1, 3, 8), (7, 8)]


def weights(n, spread, seed=0):
    values = torch.randn(n, generator=torch.Generator().manual_seed(seed)) * spread
    return values.round().clamp(-128, 127).to(torch.int8)


def same_streams(a, b):
    assert (a.levels, a.counts) == (b.levels, b.counts)
    for field in ("bitmaps", "block_counts", "codes"):
        for x, y in zip(getattr(a, field), getattr(b, field), strict=True):
            assert torch.equal(x, y), field


def round_trips(q, levels=PAPER_LEVELS):
    streams = encode(q, levels)
    same_streams(streams, reference.encode(q, levels))
    check_streams(streams)
    assert torch.equal(decode(streams), q.reshape(-1))
    assert torch.equal(reference.decode(streams), q.reshape(-1))
    assert streams.nbytes == coded_bytes(streams.counts, levels)
    assert streams.counts == level_counts(histogram(q), levels)


def test_known_streams():
    # 1 and -3 are level 1 (001, 101), 15 and -4 level 2 (01111, 11100), 16 and -127 bytes (0x10, 0x81).
    streams = encode(torch.tensor([1, 15, 16, -3, -127, -4], dtype=torch.int8), (3, 5, 8))
    assert streams.counts == (2, 2, 2)
    assert [bitmap.tolist() for bitmap in streams.bitmaps] == [[0b110110], [0b0110]]
    assert [codes.tolist() for codes in streams.codes] == [[0b101001], [0b11100_01111], [0x8110]]
    assert [table.tolist() for table in streams.block_counts] == [[0], [0]]


def test_running_counts_restart_decoding_at_every_block():
    q = weights(3 * BLOCK + 5, 9)
    streams = encode(q, (3, 5, 8))
    for block in range(4):
        before = q[: block * BLOCK].to(torch.int16).abs()
        assert streams.block_counts[0][block] == (before > 3).sum()
        assert streams.block_counts[1][block] == (before > 15).sum()


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1023, 1024, 1025, 5000, 140_000])
def test_sizes(n):
    round_trips(weights(n, 8))


@pytest.mark.parametrize("value", [0, 3, -3, 4, 15, -15, 16, 127, -127, -128])
def test_one_level_only(value):
    round_trips(torch.full((2500,), value, dtype=torch.int8))


@pytest.mark.parametrize("levels", LEVEL_SETS)
def test_level_sets(levels):
    round_trips(weights(20_000, 20), levels)
    round_trips(torch.arange(-128, 128).to(torch.int8), levels)


@given(
    st.integers(1, 4000),
    st.sampled_from(LEVEL_SETS),
    st.sampled_from([0.0, 0.5, 3.0, 12.0, 60.0, 1e4]),
    st.integers(0, 10),
)
@settings(max_examples=60, deadline=None)
def test_any_size_and_distribution(n, levels, spread, seed):
    round_trips(weights(n, spread, seed), levels)


def test_shape_does_not_matter():
    q = weights(12 * 171, 8).reshape(12, 171)
    same_streams(encode(q.t(), PAPER_LEVELS), encode(q.t().contiguous().reshape(-1), PAPER_LEVELS))


def test_levels_without_eight_bits():
    round_trips(weights(3000, 2).clamp(-7, 7), (2, 4))
    for code in (encode, reference.encode):
        with pytest.raises(ValueError, match="do not hold"):
            code(torch.tensor([8], dtype=torch.int8), (2, 4))


@pytest.mark.parametrize(
    "levels", [(), (8,), (5, 3, 8), (3, 3, 8), (0, 8), (3, 9), (1, 2, 3, 4, 5, 8), (3.0, 8)]
)
def test_impossible_levels(levels):
    with pytest.raises(ValueError, match="level"):
        encode(torch.zeros(4, dtype=torch.int8), levels)


def test_nothing_to_encode():
    with pytest.raises(ValueError, match="0 weights"):
        encode(torch.zeros(0, dtype=torch.int8), PAPER_LEVELS)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 2.5, 9.0, 30.0, 1e4])
def test_the_best_levels_beat_every_other_set_by_real_size(spread):
    q = weights(3000, spread)
    sets = [levels for count in range(2, 6) for levels in combinations(range(1, 9), count)]
    sizes = {}
    for levels in sets:
        try:
            sizes[levels] = encode(q, levels).nbytes
        except ValueError:
            assert int(q.int().abs().max()) > 2 ** (levels[-1] - 1) - 1
    best = best_levels(histogram(q))
    assert sizes[best] == min(sizes.values())
    assert len(best) == min(len(levels) for levels, size in sizes.items() if size == sizes[best])
