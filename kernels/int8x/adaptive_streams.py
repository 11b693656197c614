"""The coded form of one matrix under adaptive planes.

Rows are sorted by mean |q| and taken in groups of 16. A group has a plane of b-bit codes, one per weight:
q + m with m = 2^(b-1) - 1, or 2^b - 1 for "escaped" where |q| > m; b = 8 is plain two's complement. An
escaped weight has an e-bit short code, 2 (|q| - m - 1) + (q < 0), or 2^e - 1 for "a byte follows"; with
e = 0 the byte follows at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels.int8x.levels import MAX_WEIGHTS, WORD_BITS

GROUP_ROWS = 16
SHORT_WIDTHS = (0, 2, 3, 4, 5, 6)
MAX_UINT16 = 65535


def groups(n_out: int) -> int:
    """Groups of 16 rows; the last may be short."""
    return -(-n_out // GROUP_ROWS)


def order_type(n_out: int) -> torch.dtype:
    """Type of the stored permutation of n_out rows."""
    return torch.uint16 if n_out <= MAX_UINT16 + 1 else torch.int32


def narrowest(counts: np.ndarray) -> torch.dtype:
    """Type of a stored table of counts."""
    return torch.uint16 if counts.max(initial=0) <= MAX_UINT16 else torch.int32


@dataclass(frozen=True, slots=True)
class AdaptiveStreams:
    """A matrix [n_out, n_in] of int8; all tensors are flat and, but for `tail`, describe groups in order.

    plane: int32 words, LSB first, the codes row by row; short: int32 words, the short codes. Every group
    starts on a whole word in both. tail: int8, the bytes of all groups. short_counts, tail_counts: codes
    per group, both uint16 or both int32. widths: uint8, b | e << 4. order: uint16 or int32 [n_out], the
    row of the matrix at each sorted place. Types and table lengths are checked here (ValueError);
    `check_adaptive` compares the content.
    """

    n_out: int
    n_in: int
    plane: torch.Tensor
    short: torch.Tensor
    tail: torch.Tensor
    short_counts: torch.Tensor
    tail_counts: torch.Tensor
    widths: torch.Tensor
    order: torch.Tensor

    def __post_init__(self) -> None:
        if self.n_out < 1 or self.n_in < 1 or self.n > MAX_WEIGHTS:
            raise ValueError(f"a matrix of {self.n_out} x {self.n_in} weights is impossible")
        self._check_types()
        for name in ("short_counts", "tail_counts", "widths"):
            _check_length(name, getattr(self, name), groups(self.n_out))
        _check_length("order", self.order, self.n_out)

    @property
    def n(self) -> int:
        """Number of weights."""
        return self.n_out * self.n_in

    @property
    def parts(self) -> dict[str, torch.Tensor]:
        """All tensors by name."""
        names = ("plane", "short", "tail", "short_counts", "tail_counts", "widths", "order")
        return {name: getattr(self, name) for name in names}

    @property
    def nbytes(self) -> int:
        """Bytes of all streams and tables."""
        return sum(part.nbytes for part in self.parts.values())

    def _check_types(self) -> None:
        count_type = torch.uint16 if self.short_counts.dtype == torch.uint16 else torch.int32
        types = {
            "plane": torch.int32,
            "short": torch.int32,
            "tail": torch.int8,
            "short_counts": count_type,
            "tail_counts": count_type,
            "widths": torch.uint8,
            "order": order_type(self.n_out),
        }
        for name, part in self.parts.items():
            if part.dtype != types[name] or part.dim() != 1 or not part.is_contiguous():
                raise ValueError(f"{name} is not a flat {str(types[name]).removeprefix('torch.')} tensor")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where every group lies: codes, short codes and bytes, and where they start; arrays int64 [groups].

    `*_starts` have one more entry, the end: words for plane and short, bytes for the tail.
    """

    width: np.ndarray
    short_width: np.ndarray
    shorts: np.ndarray
    tails: np.ndarray
    plane_starts: np.ndarray
    short_starts: np.ndarray
    tail_starts: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What compiled loops need."""
        return self.width, self.short_width, self.plane_starts, self.short_starts, self.tail_starts


def lay_out(n_out: int, n_in: int, widths: np.ndarray, shorts: np.ndarray, tails: np.ndarray) -> Layout:
    """Starts of groups from widths (b | e << 4) and counts."""
    width, short_width = (widths & 15).astype(np.int64), (widths >> 4).astype(np.int64)
    rows = np.full(groups(n_out), GROUP_ROWS, np.int64)
    rows[-1] = n_out - GROUP_ROWS * (rows.size - 1)
    shorts, tails = shorts.astype(np.int64), tails.astype(np.int64)
    plane, short = _words(width * rows * n_in), _words(short_width * shorts)
    return Layout(width, short_width, shorts, tails, _starts(plane), _starts(short), _starts(tails))


def _words(bits: np.ndarray) -> np.ndarray:
    return -(-bits // WORD_BITS)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _check_length(name: str, part: torch.Tensor, length: int) -> None:
    if part.numel() != length:
        raise ValueError(f"{name} has {part.numel()} entries instead of {length}")
