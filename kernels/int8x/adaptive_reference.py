"""Adaptive planes in plain torch, code by code: the definition that every kernel is compared with."""

from __future__ import annotations

import torch

from kernels.int8x.adaptive_streams import (
    GROUP_ROWS,
    MAX_UINT16,
    SHORT_WIDTHS,
    AdaptiveStreams,
    order_type,
)
from kernels.int8x.reference import pack_bits, unpack_bits

Group = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def code_group(values: torch.Tensor, width: int, short_width: int) -> Group:
    """Values int64 [n] as (codes of the plane, short codes, bytes), all int64."""
    if width == 8:
        return values % 256, values[:0], values[:0]
    m = 2 ** (width - 1) - 1
    escaped = values.abs() > m
    lost = values[escaped]
    if not short_width:
        return torch.where(escaped, 2**width - 1, values + m), lost[:0], lost
    index = 2 * (lost.abs() - m - 1) + (lost < 0).long()
    short = index.clamp(max=2**short_width - 1)
    return torch.where(escaped, 2**width - 1, values + m), short, lost[short == 2**short_width - 1]


def decode_group(group: Group, width: int, short_width: int) -> torch.Tensor:
    """Inverse of `code_group`."""
    codes, short, tail = group
    if width == 8:
        return (codes + 128) % 256 - 128
    m = 2 ** (width - 1) - 1
    values, escaped = codes - m, codes == 2**width - 1
    lost = tail
    if short_width:
        magnitude = m + 1 + short // 2
        lost = torch.where(short % 2 == 1, -magnitude, magnitude)
        lost[short == 2**short_width - 1] = tail
    values[escaped] = lost
    return values


def group_bits(group: Group, width: int, short_width: int) -> int:
    """Bits of a group's streams, each filled up to whole words but for the bytes."""
    codes, short, tail = (part.numel() for part in group)
    return 32 * (-(-codes * width // 32) - (-short * short_width // 32)) + 8 * tail


def best_widths(values: torch.Tensor) -> tuple[int, int]:
    """The smallest form by trying all; of equal ones the widest plane, then the narrowest short code."""
    forms = [(8, 0)] + [(width, short) for width in range(7, 0, -1) for short in SHORT_WIDTHS]
    return min(forms, key=lambda form: group_bits(code_group(values, *form), *form))


def encode(q: torch.Tensor) -> AdaptiveStreams:
    """int8 q [n_out, n_in] in adaptive planes."""
    order = q.long().abs().sum(1).argsort(stable=True)
    values = [rows.reshape(-1) for rows in q[order].long().split(GROUP_ROWS)]
    widths = [best_widths(group) for group in values]
    coded = [code_group(group, *form) for group, form in zip(values, widths, strict=True)]
    shorts, tails = (torch.tensor([group[i].numel() for group in coded]) for i in (1, 2))
    count_type = torch.uint16 if max(shorts.max(), tails.max()) <= MAX_UINT16 else torch.int32
    pairs = list(zip(coded, widths, strict=True))
    return AdaptiveStreams(
        q.shape[0],
        q.shape[1],
        plane=torch.cat([_pack(group[0], width) for group, (width, _) in pairs]),
        short=torch.cat([_pack(group[1], short) for group, (_, short) in pairs]),
        tail=torch.cat([group[2] for group in coded]).to(torch.int8),
        short_counts=shorts.to(count_type),
        tail_counts=tails.to(count_type),
        widths=torch.tensor([width | short << 4 for width, short in widths]).to(torch.uint8),
        order=order.to(order_type(q.shape[0])),
    )


def decode(streams: AdaptiveStreams) -> torch.Tensor:
    """All weights as int8 [n_out, n_in]."""
    order = streams.order.long()
    out = torch.empty(streams.n_out, streams.n_in, dtype=torch.int8)
    plane, short, tail = streams.plane, streams.short, streams.tail.long()
    tables = zip(
        order.split(GROUP_ROWS), streams.widths, streams.short_counts, streams.tail_counts, strict=True
    )
    for rows, form, shorts, tails in tables:
        width, short_width = int(form) & 15, int(form) >> 4
        codes, plane = _unpack(plane, width, rows.numel() * streams.n_in)
        my_short, short = _unpack(short, short_width, int(shorts))
        values = decode_group((codes, my_short, tail[: int(tails)]), width, short_width)
        out[rows], tail = values.reshape(rows.numel(), -1).to(torch.int8), tail[int(tails) :]
    return out


def _pack(codes: torch.Tensor, width: int) -> torch.Tensor:
    return pack_bits((codes[:, None] >> torch.arange(width)) & 1)


def _unpack(words: torch.Tensor, width: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    used = -(-n * width // 32)
    bits = unpack_bits(words[:used], n * width).reshape(n, width)
    return (bits << torch.arange(width)).sum(1), words[used:]
