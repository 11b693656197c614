"""Which values of int8 weights lie in which stream, summed over tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kernels.int8x import histogram
from kernels.int8x.adaptive import layout_of
from kernels.int8x.adaptive_streams import GROUP_ROWS
from kernels.int8x.levels import largest
from runtime.int8x.entries import AdaptiveEntry, BitmapEntry, CodedEntry, Parts


@dataclass(slots=True)
class Tally:
    """`streams`: occurrences int64 [256] over q + 128 by stream, in the order in which they appear.

    `widths`: weights by the bits of the plane or level they lie in.
    """

    streams: dict[str, torch.Tensor] = field(default_factory=dict)
    widths: dict[int, int] = field(default_factory=dict)

    def add(self, entry: CodedEntry, q: torch.Tensor, parts: Parts) -> None:
        """Count one tensor."""
        if isinstance(entry, AdaptiveEntry):
            self._add_adaptive(entry, q, parts)
        elif isinstance(entry, BitmapEntry):
            self._add_levels(entry, histogram(q))
        else:
            self._count("raw", histogram(q))

    def _add_levels(self, entry: BitmapEntry, counts: torch.Tensor) -> None:
        reached = torch.zeros(256, dtype=torch.bool)
        for width, weights in zip(entry.levels, entry.counts, strict=True):
            held = _magnitudes() <= largest(width)
            self._count(f"level of {width} bits", counts * (held & ~reached))
            self.widths[width] = self.widths.get(width, 0) + weights
            reached = held

    def _add_adaptive(self, entry: AdaptiveEntry, q: torch.Tensor, parts: Parts) -> None:
        layout, order = layout_of(entry.streams(parts)), parts["order"].long()
        forms = torch.from_numpy(layout.width * 16 + layout.short_width)
        for form in forms.unique().tolist():
            rows = order[(forms == form).repeat_interleave(GROUP_ROWS)[: order.numel()]]
            self._add_group(form // 16, form % 16, histogram(q[rows]))

    def _add_group(self, width: int, short_width: int, counts: torch.Tensor) -> None:
        self.widths[width] = self.widths.get(width, 0) + int(counts.sum())
        in_plane = _magnitudes() <= largest(width)
        beyond = _magnitudes() - largest(width) - 1
        index = 2 * beyond + (torch.arange(256) < 128)
        in_short = ~in_plane & (index < (1 << short_width) - 1)
        self._count("plane", counts * in_plane)
        self._count("short codes", counts * in_short)
        self._count("bytes", counts * ~(in_plane | in_short))

    def _count(self, stream: str, counts: torch.Tensor) -> None:
        self.streams[stream] = self.streams.get(stream, torch.zeros(256, dtype=torch.int64)) + counts


def _magnitudes() -> torch.Tensor:
    return (torch.arange(256) - 128).abs()
