"""Every codec over the same int8 weights: what its parts take, how long it takes, and that it is exact."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from kernels.int8x import (
    PAPER_LEVELS,
    AdaptiveStreams,
    BitmapStreams,
    best_levels,
    check_adaptive,
    check_streams,
    decode,
    decode_adaptive,
    encode,
    encode_adaptive,
    histogram,
)
from kernels.int8x.huffman import HuffmanStreams, decode_huffman, encode_huffman
from kernels.int8x.levels import Levels


@dataclass(frozen=True, slots=True)
class Parts:
    """Bits: flags say which level a weight has, data are its codes, tables make blocks independent."""

    flags: float = 0.0
    data: float = 0.0
    tables: float = 0.0
    scales: float = 0.0

    @property
    def total(self) -> float:
        """Everything together."""
        return self.flags + self.data + self.tables + self.scales

    def plus(self, other: Parts, times: float = 1.0) -> Parts:
        """The sum with `times` the other."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in Parts.__slots__)
        return Parts(*(mine + times * theirs for mine, theirs in pairs))


@dataclass(frozen=True, slots=True)
class Matrix:
    """int8 weights [n_out, n_in] with `scale_bits` bits of scales, for `represents` times as many."""

    name: str
    q: torch.Tensor
    scale_bits: int
    represents: float = 1.0


@dataclass(frozen=True, slots=True)
class Codec:
    """A lossless code for int8 matrices."""

    name: str
    encode: Callable[[torch.Tensor], Any]
    check: Callable[[Any], None]
    decode: Callable[[Any], torch.Tensor]
    parts: Callable[[Any], Parts]


@dataclass(slots=True)
class Outcome:
    """Sums over matrices: bits, weights they stand for, weights coded, wrong ones, seconds of decoding."""

    parts: Parts = field(default_factory=Parts)
    weights: float = 0.0
    compared: int = 0
    mismatches: int = 0
    decode_s: float = 0.0

    @property
    def bits(self) -> Parts:
        """Per weight."""
        return Parts().plus(self.parts, 1 / self.weights)

    def add(self, codec: Codec, matrix: Matrix) -> None:
        """Code and decode one matrix and compare weight by weight."""
        streams = codec.encode(matrix.q)
        codec.check(streams)
        checked = time.perf_counter()
        decoded = codec.decode(streams).reshape(matrix.q.shape)
        self.decode_s += time.perf_counter() - checked
        self.parts = self.parts.plus(codec.parts(streams), matrix.represents)
        self.parts = self.parts.plus(Parts(scales=matrix.scale_bits), matrix.represents)
        self.weights += matrix.represents * matrix.q.numel()
        self.compared += matrix.q.numel()
        self.mismatches += int((decoded != matrix.q).sum())


def bitmap_parts(streams: BitmapStreams) -> Parts:
    """Bits of nested bitmaps, codes, and running counts."""
    groups = (streams.bitmaps, streams.codes, streams.block_counts)
    return Parts(*(8 * sum(part.nbytes for part in group) for group in groups))


def adaptive_parts(streams: AdaptiveStreams) -> Parts:
    """Bits of planes with their escapes, and of widths, counts and row order; there are no flags."""
    data = 8 * sum(part.nbytes for part in (streams.plane, streams.short, streams.tail))
    return Parts(data=data, tables=8 * streams.nbytes - data)


def huffman_parts(streams: HuffmanStreams) -> Parts:
    """Bits of codes, and of block starts and code lengths."""
    return Parts(data=8 * streams.stream.nbytes, tables=8 * (streams.nbytes - streams.stream.nbytes))


def bitmap_codec(name: str, levels: Levels | None) -> Codec:
    """Nested bitmaps of these levels; None: the best of each matrix."""
    return Codec(
        name,
        lambda q: encode(q, levels or best_levels(histogram(q))),
        check_streams,
        decode,
        bitmap_parts,
    )


PAPER = bitmap_codec("INT8-X (3,5,8)", PAPER_LEVELS)
BEST = bitmap_codec("INT8-X, best levels", None)
ADAPTIVE = Codec("INT8-X, adaptive planes", encode_adaptive, check_adaptive, decode_adaptive, adaptive_parts)
HUFFMAN = Codec(
    "Huffman, blocks of 1024", encode_huffman, lambda streams: None, decode_huffman, huffman_parts
)
PLAIN = Codec("plain INT8", torch.clone, lambda q: None, torch.clone, lambda q: Parts(data=8.0 * q.numel()))
CODECS = (PAPER, BEST, ADAPTIVE, HUFFMAN, PLAIN)


def code_all(matrices: Iterable[Matrix], codecs: Iterable[Codec] = CODECS) -> dict[str, Outcome]:
    """Outcomes by codec name; every codec sees every matrix."""
    outcomes = {codec.name: Outcome() for codec in codecs}
    for matrix in matrices:
        for codec in codecs:
            outcomes[codec.name].add(codec, matrix)
    return outcomes
