"""What `config.json` says about each tensor: one type per codec, each knowing its streams and how to decode.

A further codec is one more class here, in `Entry`, and a candidate in `codecs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import msgspec
import torch

from kernels.int8x import BitmapStreams, Granularity, check_levels, check_streams, decode
from kernels.int8x.levels import MAX_WEIGHTS
from kernels.int8x.streams import stream_words

Parts = Mapping[str, torch.Tensor]

PLAIN_TYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
}


@dataclass(frozen=True, slots=True)
class Part:
    """Type and shape that one stored stream must have."""

    dtype: torch.dtype
    shape: tuple[int, ...]


class PlainEntry(msgspec.Struct, frozen=True, tag="plain", tag_field="codec", forbid_unknown_fields=True):
    """A tensor stored as it is (norms, biases)."""

    shape: tuple[int, ...]
    dtype: str
    crc32: int

    def __post_init__(self) -> None:
        if self.dtype not in PLAIN_TYPES:
            raise ValueError(f"its type {self.dtype} is not known")
        if any(size < 0 for size in self.shape) or prod(self.shape) > MAX_WEIGHTS:
            raise ValueError(f"its shape {self.shape} is impossible")

    def layout(self) -> dict[str, Part]:
        """Stored streams by suffix (empty: the tensor's own name)."""
        return {"": Part(PLAIN_TYPES[self.dtype], self.shape)}


class CodedEntry(msgspec.Struct, frozen=True, tag_field="codec", forbid_unknown_fields=True):
    """A matrix kept as lossless INT8. `crc32` covers its streams, `sha256` the decoded int8 bytes."""

    shape: tuple[int, int]
    granularity: Granularity
    crc32: int
    sha256: str

    def __post_init__(self) -> None:
        if min(self.shape) < 1 or self.weights > MAX_WEIGHTS:
            raise ValueError(f"its shape {self.shape} is impossible")

    @property
    def weights(self) -> int:
        """Number of weights."""
        return prod(self.shape)

    @property
    def scale_part(self) -> Part:
        """The scales: one, or one per output row."""
        return Part(torch.float32, (1 if self.granularity == "tensor" else self.shape[0],))

    @property
    def stored_bits(self) -> int:
        """Bits on disk, tables and scales included."""
        return 8 * sum(prod(part.shape) * part.dtype.itemsize for part in self.layout().values())

    def layout(self) -> dict[str, Part]:
        """Stored streams by suffix."""
        raise NotImplementedError

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in] from streams of the right layout; ValueError if they contradict each other."""
        raise NotImplementedError

    def level_counts(self) -> tuple[int, ...]:
        """Weights per level."""
        return (self.weights,)

    def level_widths(self) -> tuple[int, ...]:
        """Bits per level."""
        return (8,)


class RawEntry(CodedEntry, frozen=True, tag="raw"):
    """One byte a weight: for tensors that nested bitmaps would not make smaller."""

    def layout(self) -> dict[str, Part]:
        """Stored streams by suffix."""
        return {"scale": self.scale_part, "raw": Part(torch.int8, self.shape)}

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in]."""
        return parts["raw"]


class BitmapEntry(CodedEntry, frozen=True, tag="bitmap"):
    """Nested bitmaps, 2 to 5 levels; `counts` are the weights in each level."""

    levels: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_levels(self.levels)
        if len(self.counts) != len(self.levels) or min(self.counts) < 0 or sum(self.counts) != self.weights:
            raise ValueError(f"its counts {self.counts} do not add up to shape {self.shape}")

    def layout(self) -> dict[str, Part]:
        """Stored streams by suffix."""
        bitmaps, tables, codes = stream_words(self.levels, self.counts)
        sizes = {f"b{i}": size for i, size in enumerate(bitmaps, 1)}
        sizes |= {f"b{i}_blk": tables for i in range(1, len(bitmaps) + 1)}
        sizes |= {f"l{i}": size for i, size in enumerate(codes, 1)}
        return {"scale": self.scale_part} | {k: Part(torch.int32, (n,)) for k, n in sizes.items()}

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in]."""
        streams = self._streams(parts)
        check_streams(streams)
        return decode(streams).reshape(self.shape)

    def level_counts(self) -> tuple[int, ...]:
        """Weights per level."""
        return self.counts

    def level_widths(self) -> tuple[int, ...]:
        """Bits per level."""
        return self.levels

    def _streams(self, parts: Parts) -> BitmapStreams:
        nested = range(1, len(self.levels))
        bitmaps = tuple(parts[f"b{i}"] for i in nested)
        tables = tuple(parts[f"b{i}_blk"] for i in nested)
        codes = tuple(parts[f"l{i}"] for i in range(1, len(self.levels) + 1))
        return BitmapStreams(self.levels, self.counts, bitmaps, tables, codes)


Entry = PlainEntry | RawEntry | BitmapEntry
