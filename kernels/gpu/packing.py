"""Packing int8 matrices into `DevicePlanes` with torch operations, on any device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernels.gpu.bitstream import Stream, Streams, empty_stream, join_streams, pack_codes
from kernels.gpu.choosing import PATCHES_A_ROUND, choose_forms, row_histograms
from kernels.gpu.fields import ALL_FORMS, GROUP_ROWS, LANES, STEP_COLUMNS, Form
from kernels.gpu.fragments import escape_order, list_order, superstep_words
from kernels.gpu.lists import pack_lists
from kernels.gpu.planes import MANY_GROUPS, DevicePlanes

MOST_COLUMNS = 65_536
_CHUNK = 1 << 23


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The padded matrix int8 [8 groups, 128 steps] in sorted row order, and each row's place in the input."""

    q: Tensor
    order: Tensor


@dataclass(frozen=True, slots=True)
class _Patches:
    """Parallel lists: sorted row, column, delta."""

    rows: Tensor
    columns: Tensor
    deltas: Tensor


@dataclass(frozen=True, slots=True)
class _Part:
    """Some groups of one form: their planes, escapes and patches."""

    groups: Tensor
    form: Form
    words: Tensor
    stream: Stream
    patches: _Patches


def pack_planes(
    q: Tensor,
    scale: Tensor,
    *,
    escape_cost: float = 0.0,
    unroll: int | None = None,
    forms: tuple[Form, ...] = ALL_FORMS,
) -> DevicePlanes:
    """Pack int8 `q` [rows, columns] with its float32 scale ([1] or [rows]); decoding gives exactly `q` again.

    `escape_cost` (bits, see `choose_forms`) buys speed with size; `unroll` steps of 128 columns make a
    superstep, by default 4 for large matrices and 2 where several warps share a group.
    """
    if q.dtype != torch.int8 or q.dim() != 2 or q.numel() == 0:
        raise ValueError(f"planes are packed from an int8 matrix, not {q.dtype} {tuple(q.shape)}")
    if q.shape[1] > MOST_COLUMNS:
        raise ValueError(f"planes hold at most {MOST_COLUMNS} columns, not {q.shape[1]}")
    if unroll is None:
        unroll = 4 if q.shape[0] >= GROUP_ROWS * MANY_GROUPS else 2
    if unroll not in (1, 2, 4):
        raise ValueError(f"a superstep has 1, 2 or 4 steps, not {unroll}")
    matrix = _sorted_rows(q)
    steps = matrix.q.shape[1] // STEP_COLUMNS
    supersteps = steps // unroll + steps % unroll
    chosen = choose_forms(row_histograms(matrix.q), 128 * steps, supersteps, escape_cost, forms)
    parts = list(_pack_parts(matrix.q, chosen, unroll))
    return _assemble(q, scale.float().reshape(-1), matrix, parts, unroll)


def _sorted_rows(q: Tensor) -> _Sorted:
    rows, columns = q.shape
    padded = pad(q, (0, -columns % STEP_COLUMNS, 0, -rows % GROUP_ROWS))
    order = torch.argsort(padded.abs().sum(1, dtype=torch.int64), stable=True)
    return _Sorted(padded[order], order)


def _pack_parts(q: Tensor, chosen: Sequence[Form], unroll: int) -> Iterator[_Part]:
    groups_at_once = max(1, _CHUNK // (GROUP_ROWS * q.shape[1]))
    for form in sorted(set(chosen)):
        mine = torch.tensor([g for g, f in enumerate(chosen) if f == form], device=q.device)
        for groups in mine.split(groups_at_once):
            yield _pack_part(q, groups, form, unroll)


def _pack_part(q: Tensor, groups: Tensor, form: Form, unroll: int) -> _Part:
    rows = (groups[:, None] * GROUP_ROWS + torch.arange(GROUP_ROWS, device=q.device)).view(-1)
    values = q[rows].short()
    coded = values.clamp(form.lowest, form.highest)
    codes, beyond = _plane_codes(coded, form)
    stream = _short_stream(coded, beyond, form, unroll)
    delta = values - coded
    row, column = delta.nonzero(as_tuple=True)
    patches = _Patches(rows[row], column, delta[row, column])
    return _Part(groups, form, superstep_words(codes, form.width, unroll), stream, patches)


def _plane_codes(coded: Tensor, form: Form) -> tuple[Tensor, Tensor]:
    """Plane codes (uint8) of values within the form's range, and which have short codes."""
    beyond = (coded > form.dense_highest) | (coded < form.dense_lowest)
    codes = coded.clamp(form.dense_lowest, form.dense_highest) + form.offset
    if form.escaped:
        codes = torch.where(beyond, (1 << form.width) - 1, codes)
    return codes.to(torch.uint8), beyond


def _short_codes(coded: Tensor, form: Form) -> Tensor:
    """Two's complement codes of `short_bits`: 0.. above the plane's range, and -1.. below (uint8)."""
    signed = torch.where(coded >= 0, coded - form.dense_highest - 1, coded - form.dense_lowest)
    return (signed & ((1 << form.short_bits) - 1)).to(torch.uint8)


def _short_stream(coded: Tensor, beyond: Tensor, form: Form, unroll: int) -> Stream:
    shorts = _short_codes(coded, form)
    if form.listed:
        places, sizes = list_order(beyond, unroll)
        codes, _ = list_order(shorts, unroll)
        return pack_lists(places, codes, sizes, form)
    if form.escaped:
        mask, counts = escape_order(beyond, unroll)
        ordered, _ = escape_order(shorts, unroll)
        return pack_codes(ordered[mask], counts, form.short_bits)
    return empty_stream(coded.device)


def _assemble(q: Tensor, scale: Tensor, matrix: _Sorted, parts: list[_Part], unroll: int) -> DevicePlanes:
    rows, columns = q.shape
    streams = join_streams([p.stream for p in parts])
    patches = _Patches(*(torch.cat([getattr(p.patches, n) for p in parts]) for n in _Patches.__slots__))
    first_round, patch_columns, patch_deltas = _deal_patches(patches, len(matrix.order))
    table = _group_table(parts, streams, first_round)
    return DevicePlanes(
        rows=rows,
        columns=columns,
        unroll=unroll,
        kinds=_kinds([p.form for p in parts]),
        planes=torch.cat([p.words.view(-1) for p in parts]),
        table=table,
        offsets=streams.offsets,
        stream=streams.words,
        patch_columns=patch_columns,
        patch_deltas=patch_deltas,
        permutation=matrix.order.to(torch.int16 if len(matrix.order) <= 65_536 else torch.int32),
        scale=scale,
    )


def _kinds(forms: list[Form]) -> int:
    """See `DevicePlanes.kinds`."""
    bits = {2 if f.listed else 1 if f.escaped else 0 for f in forms}
    return sum(1 << bit for bit in bits | {0})


def _group_table(parts: list[_Part], streams: Streams, first_round: Tensor) -> Tensor:
    """See `DevicePlanes.table`."""
    table = torch.zeros(len(first_round), 4, dtype=torch.int64, device=first_round.device)
    table[:, 2] = first_round
    plane = 0
    for part, first_offset in zip(parts, streams.firsts, strict=True):
        count, units = len(part.groups), part.words.shape[1] // LANES
        index = torch.arange(count, device=table.device)
        table[part.groups, 0] = plane + index * units
        table[part.groups, 1] = part.form.key
        table[part.groups, 3] = first_offset + index * (len(part.stream.offsets) // count)
        plane += count * units
    return table.int()


def _deal_patches(patches: _Patches, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """First round of each group [groups + 1], and columns and deltas [rounds, 32], zero where a row has no
    more.
    """
    order = torch.argsort(patches.rows, stable=True)
    row, column, delta = patches.rows[order], patches.columns[order], patches.deltas[order]
    counts = torch.bincount(row, minlength=rows)
    rank = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    rounds = (counts.view(-1, GROUP_ROWS).amax(1) + PATCHES_A_ROUND - 1) // PATCHES_A_ROUND
    first = pad(rounds.cumsum(0), (1, 0))
    at = first[row // GROUP_ROWS] + rank // PATCHES_A_ROUND
    lane = row % GROUP_ROWS * PATCHES_A_ROUND + rank % PATCHES_A_ROUND
    total = int(first[-1])
    columns = torch.zeros(total, LANES, dtype=torch.int16, device=row.device)
    deltas = torch.zeros(total, LANES, dtype=torch.int8, device=row.device)
    columns[at, lane] = column.to(torch.int16)
    deltas[at, lane] = delta.to(torch.int8)
    return first, columns, deltas
