"""What `config.json` says about each tensor: one type per codec, each knowing its streams and how to decode.

A further codec is one more class here, in `Entry`, and a candidate in `choice`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import msgspec
import torch

from kernels.int8x import (
    AdaptiveStreams,
    BitmapStreams,
    Granularity,
    Scales,
    check_adaptive,
    check_levels,
    check_streams,
    decode,
    decode_adaptive,
)
from kernels.int8x.adaptive_streams import groups, order_type
from kernels.int8x.levels import MAX_WEIGHTS
from kernels.int8x.scales import FactorName
from kernels.int8x.streams import stream_words

Parts = Mapping[str, torch.Tensor]
# How q came from the weights: by itself, or with the error of earlier columns fed back.
Rounding = Literal["nearest", "economical"]

PLAIN_TYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
}
_COUNT_TYPES = {"uint16": torch.uint16, "int32": torch.int32}


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


class CodedEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="codec", forbid_unknown_fields=True):
    """A matrix kept as lossless INT8. `crc32` covers its streams, `sha256` the decoded int8 bytes."""

    shape: tuple[int, int]
    granularity: Granularity
    factors: tuple[FactorName, ...] = ()
    rounding: Rounding = "nearest"
    crc32: int
    sha256: str

    def __post_init__(self) -> None:
        if min(self.shape) < 1 or self.weights > MAX_WEIGHTS:
            raise ValueError(f"its shape {self.shape} is impossible")
        if self.factors and self.granularity != "aware":
            raise ValueError(f"its scales per {self.granularity} have factors")

    @property
    def weights(self) -> int:
        """Number of weights."""
        return prod(self.shape)

    @property
    def stored_bits(self) -> int:
        """Bits on disk, tables and scales included."""
        return 8 * sum(prod(part.shape) * part.dtype.itemsize for part in self.layout().values())

    def layout(self) -> dict[str, Part]:
        """Stored streams by suffix, in the order of the checksum."""
        return self._scale_layout() | self._stream_layout()

    def scales(self, parts: Parts) -> Scales:
        """Scales from stored parts; ValueError for values that are impossible."""
        return Scales(self.granularity, parts["scale"], parts.get("rows"), parts.get("columns"))

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in] from streams of the right layout; ValueError if they contradict each other."""
        raise NotImplementedError

    def _stream_layout(self) -> dict[str, Part]:
        raise NotImplementedError

    def _scale_layout(self) -> dict[str, Part]:
        sizes = dict(zip(("rows", "columns"), self.shape, strict=True))
        scale = Part(torch.float32, (self.shape[0] if self.granularity == "row" else 1,))
        codes = {name: Part(torch.uint8, (n,)) for name, n in sizes.items() if name in self.factors}
        return {"scale": scale} | codes


class RawEntry(CodedEntry, frozen=True, kw_only=True, tag="raw"):
    """One byte a weight: for tensors that nothing makes smaller."""

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in]."""
        return parts["raw"]

    def _stream_layout(self) -> dict[str, Part]:
        return {"raw": Part(torch.int8, self.shape)}


class BitmapEntry(CodedEntry, frozen=True, kw_only=True, tag="bitmap"):
    """Nested bitmaps, 2 to 5 levels; `counts` are the weights in each level."""

    levels: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_levels(self.levels)
        if len(self.counts) != len(self.levels) or min(self.counts) < 0 or sum(self.counts) != self.weights:
            raise ValueError(f"its counts {self.counts} do not add up to shape {self.shape}")

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in]."""
        nested = range(1, len(self.levels))
        bitmaps = tuple(parts[f"b{i}"] for i in nested)
        tables = tuple(parts[f"b{i}_blk"] for i in nested)
        codes = tuple(parts[f"l{i}"] for i in range(1, len(self.levels) + 1))
        streams = BitmapStreams(self.levels, self.counts, bitmaps, tables, codes)
        check_streams(streams)
        return decode(streams).reshape(self.shape)

    def _stream_layout(self) -> dict[str, Part]:
        bitmaps, tables, codes = stream_words(self.levels, self.counts)
        sizes = {f"b{i}": size for i, size in enumerate(bitmaps, 1)}
        sizes |= {f"b{i}_blk": tables for i in range(1, len(bitmaps) + 1)}
        sizes |= {f"l{i}": size for i, size in enumerate(codes, 1)}
        return {key: Part(torch.int32, (size,)) for key, size in sizes.items()}


class AdaptiveEntry(CodedEntry, frozen=True, kw_only=True, tag="adaptive"):
    """Adaptive planes: words of plane and short codes, bytes of the tail, and the type of both counts."""

    plane: int
    short: int
    tail: int
    counts: Literal["uint16", "int32"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.plane, self.short, self.tail) < 0 or max(self.plane, self.short, self.tail) > MAX_WEIGHTS:
            raise ValueError("the lengths of its streams are impossible")

    def streams(self, parts: Parts) -> AdaptiveStreams:
        """The streams as one object, not yet compared with each other; ValueError for wrong types."""
        n_out, n_in = self.shape
        return AdaptiveStreams(
            n_out=n_out, n_in=n_in, **{name: parts[name] for name in self._stream_layout()}
        )

    def decode(self, parts: Parts) -> torch.Tensor:
        """int8 [n_out, n_in]."""
        streams = self.streams(parts)
        check_adaptive(streams)
        return decode_adaptive(streams)

    def _stream_layout(self) -> dict[str, Part]:
        counts = Part(_COUNT_TYPES[self.counts], (groups(self.shape[0]),))
        return {
            "plane": Part(torch.int32, (self.plane,)),
            "short": Part(torch.int32, (self.short,)),
            "tail": Part(torch.int8, (self.tail,)),
            "short_counts": counts,
            "tail_counts": counts,
            "widths": Part(torch.uint8, (groups(self.shape[0]),)),
            "order": Part(order_type(self.shape[0]), (self.shape[0],)),
        }


Coded = RawEntry | BitmapEntry | AdaptiveEntry
Entry = PlainEntry | Coded
