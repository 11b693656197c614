"""Block-parallel canonical Huffman coding of int8 weights, on the CPU: what INT8-X is compared with.

Codes lie back to back, most significant bit first; the bit at which every block of 1024 weights starts is
kept, so that blocks decode independently, as a GPU needs it. Source: Huffman 1952, canonical codes as in
RFC 1951, 3.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels.int8x import huffman_loops as loops
from kernels.int8x.levels import BLOCK, MAX_WEIGHTS, WORD_BITS, blocks, words
from kernels.int8x.limits import histogram, huffman_lengths
from kernels.int8x.pool import for_each

TILE_BLOCKS = 128


@dataclass(frozen=True, slots=True)
class HuffmanStreams:
    """n weights; `lengths` uint8 [256]: code length of each q + 128, 0 where it never occurs.

    stream: int32 words, most significant bit first. starts: the bit at which each block of 1024 begins,
    int32, or int64 for streams of 2^31 bits and more.
    """

    n: int
    lengths: torch.Tensor
    stream: torch.Tensor
    starts: torch.Tensor

    @property
    def nbytes(self) -> int:
        """Bytes of stream, block starts and code lengths."""
        return self.stream.nbytes + self.starts.nbytes + self.lengths.nbytes


@dataclass(frozen=True, slots=True)
class _Code:
    """Codes and lengths by symbol, symbols in order, and what decoding needs by length: `huffman_loops`."""

    codes: np.ndarray
    lengths: np.ndarray
    symbols: np.ndarray
    ends: np.ndarray
    firsts: np.ndarray


def encode_huffman(q: torch.Tensor) -> HuffmanStreams:
    """int8 weights of any shape under the Huffman code of their own histogram."""
    if not 0 < q.numel() <= MAX_WEIGHTS:
        raise ValueError(f"{q.numel()} weights are outside 1 to {MAX_WEIGHTS}")
    values = q.contiguous().reshape(-1).numpy()
    code = _canonical(huffman_lengths(histogram(q)).numpy())
    starts = _starts(values, code.lengths)
    stream = _packed(values, code, starts)
    kind = torch.int32 if starts[-1] < 2**31 else torch.int64
    return HuffmanStreams(
        n=values.size,
        lengths=torch.from_numpy(code.lengths.astype(np.uint8)),
        stream=torch.from_numpy(stream.view(np.int32)),
        starts=torch.from_numpy(starts[:-1]).to(kind),
    )


def decode_huffman(streams: HuffmanStreams) -> torch.Tensor:
    """All weights as int8 [n], blocks in parallel. Trusts its input to come from `encode_huffman`."""
    out = torch.empty(streams.n, dtype=torch.int8)
    target, starts = out.numpy(), streams.starts.numpy().astype(np.int64)
    code = _canonical(streams.lengths.numpy().astype(np.int64))
    # Two words of zeros, so that a code's 64-bit window never ends behind the stream.
    stream = np.append(streams.stream.numpy().view(np.uint32), np.zeros(2, np.uint32))
    short = loops.short_codes(code.codes, code.lengths)

    def run(first: int) -> None:
        tile = target[first * BLOCK : (first + TILE_BLOCKS) * BLOCK]
        loops.unpack(stream, starts[first], short, code.ends, code.firsts, code.symbols, tile)

    for_each(run, range(0, blocks(streams.n), TILE_BLOCKS))
    return out


def _canonical(lengths: np.ndarray) -> _Code:
    """Codes in order of length, then symbol."""
    longest = int(lengths.max())
    symbols = np.argsort(lengths, kind="stable")[np.count_nonzero(lengths == 0) :]
    counts = np.bincount(lengths, minlength=longest + 1)
    counts[0] = 0
    codes, ends, firsts = (
        np.zeros(256, np.uint64),
        np.zeros(longest + 1, np.uint64),
        np.zeros(longest + 1, int),
    )
    code = done = 0
    for length in range(1, longest + 1):
        code <<= 1
        firsts[length] = done - code
        for symbol in symbols[done : done + counts[length]]:
            codes[symbol] = code
            code += 1
        done += int(counts[length])
        ends[length] = code
    return _Code(codes, lengths.astype(np.int64), symbols, ends, firsts)


def _starts(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """First bit of each block, and the end of the last: int64 [blocks + 1]."""
    sizes = np.zeros(blocks(values.size) + 1, np.int64)

    def run(first: int) -> None:
        tile = values[first * BLOCK : (first + TILE_BLOCKS) * BLOCK]
        loops.block_bits(tile, lengths, sizes[first + 1 : first + 1 + blocks(tile.size)])

    for_each(run, range(0, blocks(values.size), TILE_BLOCKS))
    return np.cumsum(sizes)


def _packed(values: np.ndarray, code: _Code, starts: np.ndarray) -> np.ndarray:
    stream = np.zeros(words(int(starts[-1])), np.uint32)
    tiles = range(0, blocks(values.size), TILE_BLOCKS)
    # The word two tiles share is finished by one thread.
    ends = np.zeros(len(tiles), np.uint32)

    def run(first: int) -> None:
        tile = values[first * BLOCK : (first + TILE_BLOCKS) * BLOCK]
        ends[first // TILE_BLOCKS] = loops.pack(tile, code.codes, code.lengths, starts[first], stream)

    for_each(run, tiles)
    for number, first in enumerate(tiles):
        end = int(starts[min(first + TILE_BLOCKS, starts.size - 1)])
        if end % WORD_BITS:
            stream[end // WORD_BITS] |= ends[number]
    return stream
