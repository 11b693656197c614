"""Streams that contradict each other are refused before any code is read through them."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x import check_streams, decode, encode, reference

LEVELS = (3, 5, 8)


def coded(n=5000):
    values = torch.randn(n, generator=torch.Generator().manual_seed(1)) * 9
    return encode(values.round().clamp(-127, 127).to(torch.int8), LEVELS)


def with_flipped_bit(streams, field, level, bit):
    parts = [part.clone() for part in getattr(streams, field)]
    word = parts[level][bit // 32]
    parts[level][bit // 32] = word ^ torch.tensor(1 << (bit % 32), dtype=torch.int64).to(torch.int32)
    return dataclasses.replace(streams, **{field: tuple(parts)})


@given(st.sampled_from(["bitmaps", "block_counts"]), st.integers(0, 1), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_any_flipped_bit_of_bitmaps_or_tables_is_refused(field, level, bit):
    streams = coded()
    size = 32 * getattr(streams, field)[level].numel()
    with pytest.raises(ValueError, match=r"bitmap|block counts"):
        check_streams(with_flipped_bit(streams, field, level, bit % size))


@given(st.integers(0, 2), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_a_flipped_code_bit_changes_one_weight_of_its_level(level, bit):
    streams = coded()
    changed = with_flipped_bit(streams, "codes", level, bit % (streams.counts[level] * LEVELS[level]))
    check_streams(changed)
    assert (decode(changed) != decode(streams)).sum() == 1


def test_a_bit_moved_to_another_block_keeps_the_popcount_but_not_the_running_counts():
    streams = coded(3000)
    bits = reference.unpack_bits(streams.bitmaps[0], 3000)
    bits[bits.nonzero()[0]] = 0
    bits[2048 + (bits[2048:] == 0).nonzero()[0]] = 1
    moved = dataclasses.replace(streams, bitmaps=(reference.pack_bits(bits), streams.bitmaps[1]))
    with pytest.raises(ValueError, match="block counts of bitmap 1"):
        check_streams(moved)


@pytest.mark.parametrize("field", ["bitmaps", "block_counts", "codes"])
def test_wrong_lengths_and_types(field):
    streams = coded()
    parts = getattr(streams, field)
    for wrong in (parts[0][:-1], torch.cat([parts[0], parts[0][:1]]), parts[0].long(), parts[0][None]):
        with pytest.raises(ValueError, match="stream 1"):
            dataclasses.replace(streams, **{field: (wrong, *parts[1:])})
    with pytest.raises(ValueError, match="belong"):
        dataclasses.replace(streams, **{field: parts[1:]})


@pytest.mark.parametrize("counts", [(5000, 0), (4000, 900, 100), (-1, 5001, 0), (0, 0, 0), (2**31, 0, 0)])
def test_wrong_counts(counts):
    streams = coded()
    with pytest.raises(ValueError, match=r"counts|stream|weights"):
        dataclasses.replace(streams, counts=counts)
