"""Lists of the weights outside a plane: one byte each, distance and code."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.bitstream import Stream
from kernels.gpu.fields import Form

_FILLER = 0xFF


def pack_lists(places: Tensor, codes: Tensor, sizes: list[int], form: Form) -> Stream:
    """Lists of each group [groups, weights] (bool, uint8) and superstep of `sizes`; offsets in words, with
    ends.

    A byte is `distance << short_bits | code`, distance counting the weights passed over since the last; a
    distance of `form.farthest` goes on by so many and lists nothing. Each list is filled up to a word.
    """
    groups, device = len(places), places.device
    first = torch.tensor([0, *sizes], device=device).cumsum(0)
    group, place = places.nonzero(as_tuple=True)
    superstep = torch.searchsorted(first, place, right=True) - 1
    segment = group * len(sizes) + superstep
    before = torch.cat([torch.full((1,), -1, device=device), place[:-1]])
    starts = torch.cat([torch.ones(1, dtype=torch.bool, device=device), segment[1:] != segment[:-1]])[
        : len(place)
    ]
    before = torch.where(starts, first[superstep] - 1, before[: len(place)])
    distance = place - before - 1
    taken = distance // form.farthest + 1
    lengths = torch.zeros(groups * len(sizes), dtype=torch.int64, device=device).index_add(0, segment, taken)
    words = (lengths + 3) // 4
    ends = words.cumsum(0)
    # Where each entry's last byte goes: behind all bytes of its list before it.
    running = taken.cumsum(0)
    lead = (lengths.cumsum(0) - lengths)[segment]
    at = 4 * (ends - words)[segment] + running - lead - 1
    packed = torch.full((4 * int(words.sum()),), _FILLER, dtype=torch.uint8, device=device)
    packed[at] = ((distance % form.farthest) << form.short_bits).to(torch.uint8) | codes[group, place]
    bounds = torch.cat([(ends - words).view(groups, -1), ends.view(groups, -1)[:, -1:]], 1)
    return Stream(packed.view(torch.int32), bounds.view(-1), 1)
