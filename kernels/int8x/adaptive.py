"""Encoding, checking and decoding of adaptive planes on the CPU; `adaptive_reference` defines them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from kernels.int8x import adaptive_loops as loops
from kernels.int8x import adaptive_widths
from kernels.int8x.adaptive_streams import (
    GROUP_ROWS,
    SHORT_WIDTHS,
    AdaptiveStreams,
    Layout,
    groups,
    lay_out,
    narrowest,
    order_type,
)
from kernels.int8x.levels import MAX_WEIGHTS
from kernels.int8x.pool import for_tiles


@dataclass(frozen=True, slots=True)
class AdaptivePlan:
    """What a matrix takes under adaptive planes, known before it is coded.

    order int64 [n_out]; widths uint8, shorts and tails int64, all [groups]; histogram int64 [256] over
    q + 128.
    """

    shape: tuple[int, int]
    order: np.ndarray
    widths: np.ndarray
    shorts: np.ndarray
    tails: np.ndarray
    histogram: torch.Tensor

    @property
    def nbytes(self) -> int:
        """Exact bytes of all streams and tables."""
        layout = self.layout()
        streams = 4 * (layout.plane_starts[-1] + layout.short_starts[-1]) + layout.tail_starts[-1]
        per_group = 1 + 2 * self.count_type().itemsize
        return (
            int(streams) + per_group * self.widths.size + order_type(self.shape[0]).itemsize * self.shape[0]
        )

    def layout(self) -> Layout:
        """Where every group will lie."""
        return lay_out(*self.shape, self.widths, self.shorts, self.tails)

    def count_type(self) -> torch.dtype:
        """Type of both tables of counts."""
        return narrowest(np.maximum(self.shorts, self.tails))


def plan_adaptive(q: torch.Tensor) -> AdaptivePlan:
    """Sort the rows of q int8 [n_out, n_in] and choose every group's widths; ValueError for other shapes."""
    if q.dim() != 2 or not 0 < q.numel() <= MAX_WEIGHTS:
        raise ValueError(f"{list(q.shape)} is no matrix of 1 to {MAX_WEIGHTS} weights")
    matrix = q.contiguous().numpy()
    n_out, n_in = matrix.shape
    order, total = _sorted_rows(matrix), groups(n_out)
    widths, shorts, tails = np.empty(total, np.uint8), np.empty(total, np.int64), np.empty(total, np.int64)
    counted = []

    def run(first: int, end: int) -> None:
        counted.append(np.zeros(256, np.int64))
        adaptive_widths.choose_groups(matrix, order, first, end, widths, shorts, tails, counted[-1])

    for_tiles(total, GROUP_ROWS * n_in, run)
    histogram = torch.from_numpy(np.roll(np.sum(counted, 0), 128))
    return AdaptivePlan((n_out, n_in), order, widths, shorts, tails, histogram)


def encode_adaptive(q: torch.Tensor, plan: AdaptivePlan | None = None) -> AdaptiveStreams:
    """int8 q [n_out, n_in] in adaptive planes; `plan`: the one of this q, where it is known already."""
    plan = plan or plan_adaptive(q)
    matrix, layout = q.contiguous().numpy(), plan.layout()
    plane, short = (np.empty(s[-1], np.uint32) for s in (layout.plane_starts, layout.short_starts))
    tail = np.empty(layout.tail_starts[-1], np.int8)

    def run(first: int, end: int) -> None:
        loops.pack_groups(matrix, plan.order, first, end, layout.arrays, plane, short, tail)

    for_tiles(plan.widths.size, GROUP_ROWS * matrix.shape[1], run)
    return AdaptiveStreams(
        *plan.shape,
        plane=torch.from_numpy(plane.view(np.int32)),
        short=torch.from_numpy(short.view(np.int32)),
        tail=torch.from_numpy(tail),
        short_counts=torch.from_numpy(plan.shorts).to(plan.count_type()),
        tail_counts=torch.from_numpy(plan.tails).to(plan.count_type()),
        widths=torch.from_numpy(plan.widths),
        order=torch.from_numpy(plan.order).to(order_type(plan.shape[0])),
    )


def check_adaptive(streams: AdaptiveStreams) -> None:
    """ValueError unless tables, streams and the escapes found tell one story; decoding is safe then."""
    order = _order(streams)
    if order.min() < 0 or order.max() >= order.size or np.bincount(order).max() > 1:
        raise ValueError("order is not a permutation of the rows")
    layout = _checked_layout(streams)
    found = np.empty((layout.width.size, 3), np.int64)
    shape, plane, short = (streams.n_out, streams.n_in), _uint32(streams.plane), _uint32(streams.short)

    def run(first: int, end: int) -> None:
        loops.inspect_groups(plane, short, shape, layout.shorts, first, end, layout.arrays, found)

    for_tiles(layout.width.size, GROUP_ROWS * streams.n_in, run)
    _compare(layout, found)


def decode_adaptive(streams: AdaptiveStreams) -> torch.Tensor:
    """All weights as int8 [n_out, n_in], groups in parallel. Trusts its input: `check_adaptive` first."""
    out = torch.empty(streams.n_out, streams.n_in, dtype=torch.int8)
    target, layout, order = out.numpy(), layout_of(streams), _order(streams)
    plane, short, tail = _uint32(streams.plane), _uint32(streams.short), streams.tail.numpy()

    def run(first: int, end: int) -> None:
        loops.unpack_groups(plane, short, tail, order, first, end, layout.arrays, target)

    for_tiles(layout.width.size, GROUP_ROWS * streams.n_in, run)
    return out


def layout_of(streams: AdaptiveStreams) -> Layout:
    """Where the groups of coded streams lie, from their tables alone."""
    tables = (part.numpy() for part in (streams.widths, streams.short_counts, streams.tail_counts))
    return lay_out(streams.n_out, streams.n_in, *tables)


def _sorted_rows(matrix: np.ndarray) -> np.ndarray:
    sums = np.empty(matrix.shape[0], np.int64)
    for_tiles(
        sums.size,
        matrix.shape[1],
        lambda first, end: adaptive_widths.magnitude_sums(matrix, first, end, sums),
    )
    return np.argsort(sums, kind="stable")


def _checked_layout(streams: AdaptiveStreams) -> Layout:
    layout = layout_of(streams)
    impossible = (layout.width < 1) | (layout.width > 8) | ~np.isin(layout.short_width, SHORT_WIDTHS)
    if (impossible | ((layout.width == 8) & (layout.short_width > 0))).any():
        raise ValueError("widths name a form that does not exist")
    if (np.minimum(layout.shorts, layout.tails) < 0).any():
        raise ValueError("short_counts or tail_counts are negative")
    ends = {"plane": layout.plane_starts, "short": layout.short_starts, "tail": layout.tail_starts}
    for name, starts in ends.items():
        if streams.parts[name].numel() != starts[-1]:
            raise ValueError(f"{name} has {streams.parts[name].numel()} entries, its groups {starts[-1]}")
    return layout


def _compare(layout: Layout, found: np.ndarray) -> None:
    escaped, follow, excess = found.T
    shorts = np.where(layout.short_width > 0, escaped, 0)
    wrong = np.flatnonzero((shorts != layout.shorts) | (follow != layout.tails))
    if wrong.size:
        g = wrong[0]
        raise ValueError(
            f"group {g} has {escaped[g]} escapes of which {follow[g]} go on in a byte,"
            f" its counts say {layout.shorts[g]} short codes and {layout.tails[g]} bytes"
        )
    if excess.any():
        raise ValueError(f"the streams of group {np.flatnonzero(excess)[0]} have ones beyond their end")


def _order(streams: AdaptiveStreams) -> np.ndarray:
    return streams.order.numpy().astype(np.int64)


def _uint32(part: torch.Tensor) -> np.ndarray:
    return part.numpy().view(np.uint32)
