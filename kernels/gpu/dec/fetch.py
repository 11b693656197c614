"""Residual rows in host memory, and how a product's first programs fetch the selected ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.dec.selection import PADDING, Selection

# One warp reads a segment: 32 words of 8 outputs, 128 bytes of a row.
SEGMENT_WORDS = 32
WORD_OUTPUTS = 8
_LATENCY_US = 2.2
_ROWS = 8
_MOST_SPLITS = 16


@dataclass(frozen=True, slots=True)
class ResidualRows:
    """4-bit residual of a linear by input channel.

    words  int32 [n_in, ceil(n_out / 8)], nibble j of word w = output 8 w + j in two's complement
    (`kernels.dec.pack_nibbles`). Page-locked host memory that the device can read, or device memory.
    scale  float32 [n_out] on the device: residual = scale * nibble.
    """

    words: Tensor
    scale: Tensor

    def __post_init__(self) -> None:
        if self.words.dtype != torch.int32 or self.words.dim() != 2 or not self.words.is_contiguous():
            raise ValueError("residual rows are contiguous int32 [n_in, ceil(n_out / 8)]")
        if self.words.shape[1] != -(-self.scale.numel() // WORD_OUTPUTS):
            raise ValueError(f"rows of {self.words.shape[1]} words do not hold {self.scale.numel()} outputs")

    @property
    def columns(self) -> int:
        """Input channels."""
        return self.words.shape[0]

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.scale.numel()

    @property
    def row_words(self) -> int:
        """Words of 8 outputs in one channel's row."""
        return self.words.shape[1]

    @property
    def row_bytes(self) -> int:
        """Bytes of one channel's row."""
        return 4 * self.row_words

    def segment_groups(self, warps: int) -> int:
        """Programs of `warps` warps that read one row, a segment each warp."""
        return -(-self.row_words // (SEGMENT_WORDS * warps))


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """How rows are fetched: every warp reads one segment of each splits-th row, `rows` of them in flight.

    Time goes by rounds of rows * splits channels, so k_chunk is best at the end of one; what all warps have
    in flight should be what the link needs and no more (`default_fetch_config`). `ahead`: a warp reads the
    next round's list while it waits (more registers).
    """

    rows: int = 8
    splits: int = 1
    ahead: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= 16 or self.splits < 1:
            raise ValueError(f"{self.rows} rows in flight in {self.splits} splits is no way to fetch")
        if 2 * self.rows * self.splits > PADDING:
            raise ValueError(f"{self.rows} rows in {self.splits} splits reach past the padded list")


def default_fetch_config(residual: ResidualRows, link_gb_s: float = 50.0) -> FetchConfig:
    """Rows and splits that keep just what the link needs under way, 2.2 us of its bandwidth.

    That is its latency beside a product. More requests than it can serve wait where the product's own pass,
    and slow it down: on an H200 twice as many double what a correction costs.
    """
    segments = -(-residual.row_words // SEGMENT_WORDS)
    wanted = max(1, round(link_gb_s * 1e3 * _LATENCY_US / (4 * SEGMENT_WORDS * segments)))
    rows = min(_ROWS, wanted)
    return FetchConfig(rows, min(_MOST_SPLITS, max(1, round(wanted / rows))), ahead=True)


@dataclass(frozen=True, slots=True)
class Fetch:
    """The correction of one linear in one decode step: the product's first programs carry it out.

    partial: float32 [splits, 8 * row_words]: sums of nibble * value by split, written when k_chunk in effect
    is above 0; what they lack is the residual's scale and the selection's common factor.
    """

    residual: ResidualRows
    selection: Selection
    partial: Tensor
    config: FetchConfig

    def __post_init__(self) -> None:
        if self.selection.columns != self.residual.columns:
            raise ValueError(
                f"{self.selection.columns} channels were selected among {self.residual.columns} rows"
            )
        wanted = (self.config.splits, WORD_OUTPUTS * self.residual.row_words)
        if tuple(self.partial.shape) != wanted or self.partial.dtype != torch.float32:
            raise ValueError(f"partial sums have shape {tuple(self.partial.shape)}, not {wanted} in float32")

    def programs(self, warps: int) -> int:
        """Programs of `warps` warps that fetch."""
        return self.residual.segment_groups(warps) * self.config.splits


def new_fetch(
    residual: ResidualRows,
    selection: Selection,
    config: FetchConfig | None = None,
    partial: Tensor | None = None,
) -> Fetch:
    """A fetch on the selection's device, with partial sums of its own unless it shares `partial`."""
    config = config if config is not None else default_fetch_config(residual)
    if partial is None:
        shape = (config.splits, WORD_OUTPUTS * residual.row_words)
        partial = torch.zeros(shape, dtype=torch.float32, device=selection.values.device)
    return Fetch(residual, selection, partial, config)
