"""Block-parallel Huffman coding: round trips, its size, and its codes against a decoder bit by bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernels.int8x import histogram, huffman_bits
from kernels.int8x.huffman import decode_huffman, encode_huffman

INT8 = arrays.arrays(np.int8, st.integers(1, 3000), elements=st.integers(-128, 127))
NARROW = arrays.arrays(np.int8, st.integers(1, 3000), elements=st.integers(-2, 2))


def normal(n, sigma=5.0, seed=0):
    values = torch.randn(n, generator=torch.Generator().manual_seed(seed)) * sigma
    return values.round().clamp(-127, 127).to(torch.int8)


def fibonacci(longest):
    """Weights whose Huffman code has codes of 1, 2, 3, ... up to `longest` bits."""
    counts = [1, 1]
    while len(counts) <= longest:
        counts.append(counts[-1] + counts[-2])
    values = [torch.full((count,), i - 15, dtype=torch.int8) for i, count in enumerate(counts)]
    q = torch.cat(values)
    return q[torch.randperm(q.numel(), generator=torch.Generator().manual_seed(0))]


def bits_of(streams):
    """The stream as a string of its bits, one word after the other."""
    return "".join(f"{word & 0xFFFFFFFF:032b}" for word in streams.stream.tolist())


def decode_plainly(streams):
    """Canonical codes from lengths as RFC 1951 builds them, matched bit by bit."""
    lengths = streams.lengths.tolist()
    codes, code = {}, 0
    for length in range(1, max(lengths) + 1):
        code <<= 1
        for symbol in (s for s, wanted in enumerate(lengths) if wanted == length):
            codes[f"{code:0{length}b}"] = symbol - 128
            code += 1
    found, begun = [], ""
    for bit in bits_of(streams):
        begun += bit
        if begun in codes:
            found.append(codes[begun])
            begun = ""
    return found[: streams.n]


# The first example compiles.
@settings(deadline=None)
@given(st.one_of(INT8, NARROW))
def test_round_trip_and_size(values):
    q = torch.from_numpy(values)
    streams = encode_huffman(q)
    assert torch.equal(decode_huffman(streams), q)
    bits = round(huffman_bits(histogram(q)) * q.numel())
    blocks = -(-q.numel() // 1024)
    assert streams.nbytes == 4 * -(-bits // 32) + 4 * blocks + 256


@pytest.mark.parametrize("q", [normal(5000), normal(1024, 1.0), fibonacci(13)])
def test_stream_is_the_canonical_code(q):
    streams = encode_huffman(q)
    assert decode_plainly(streams) == q.tolist()
    lengths = streams.lengths.long()
    for block, start in enumerate(streams.starts.tolist()):
        assert start == int(lengths[q[: block * 1024].long() + 128].sum())


def test_codes_longer_than_the_table_and_many_tiles():
    q = fibonacci(26)
    streams = encode_huffman(q)
    assert int(streams.lengths.max()) == 26
    assert torch.equal(decode_huffman(streams), q)


def test_one_symbol_takes_one_bit():
    streams = encode_huffman(torch.full((3, 100), -7, dtype=torch.int8))
    assert streams.lengths.tolist() == [0] * 121 + [1] + [0] * 134
    assert streams.stream.tolist() == [0] * 10
    assert decode_huffman(streams).tolist() == [-7] * 300


def test_no_weights_are_refused():
    with pytest.raises(ValueError, match="0 weights"):
        encode_huffman(torch.empty(0, dtype=torch.int8))
