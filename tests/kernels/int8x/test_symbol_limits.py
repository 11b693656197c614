import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8x.limits import entropy_bits, histogram, huffman_bits, huffman_lengths


def test_histogram_counts_every_value_where_it_belongs():
    q = torch.tensor([[-128, -127, 0], [0, 1, 127]], dtype=torch.int8)
    counts = histogram(q)
    assert counts.sum() == 6
    assert {i - 128: int(n) for i, n in enumerate(counts) if n} == {-128: 1, -127: 1, 0: 2, 1: 1, 127: 1}


def test_known_codes():
    # Wikipedia's textbook case: weights 0.1, 0.15, 0.3, 0.16, 0.29 take 3, 3, 2, 2, 2 bits, entropy 2.205.
    counts = torch.tensor([10, 15, 30, 16, 29])
    assert huffman_lengths(counts).tolist() == [3, 3, 2, 2, 2]
    assert huffman_bits(counts) == pytest.approx(2.25)
    assert entropy_bits(counts) == pytest.approx(2.205, abs=5e-4)


def test_uniform_and_lone_symbols():
    assert entropy_bits(torch.ones(256)) == huffman_bits(torch.ones(256, dtype=torch.int64)) == 8
    lone = torch.tensor([0, 7, 0])
    assert (entropy_bits(lone), huffman_bits(lone)) == (0, 1)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=256).filter(lambda c: sum(n > 0 for n in c) > 1))
@settings(max_examples=60, deadline=None)
def test_huffman_is_a_complete_prefix_code_within_a_bit_of_entropy(counts):
    counts = torch.tensor(counts)
    lengths = huffman_lengths(counts)
    assert bool(((lengths > 0) == (counts > 0)).all())
    assert (0.5 ** lengths[counts > 0].double()).sum() == 1
    assert entropy_bits(counts) - 1e-9 <= huffman_bits(counts) < entropy_bits(counts) + 1
