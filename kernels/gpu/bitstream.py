"""Short codes of escaped weights as bit streams in int32 words, most significant bit first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

# A warp reads a whole line of 32 words from any offset, and the word after each.
_READ_AHEAD = 64


@dataclass(frozen=True, slots=True)
class Stream:
    """What some groups of one form keep beside their planes: `words` int32, and `offsets` int64 into them.

    `unit` is how many offsets a word has: 32 for bits, 1 for words.
    """

    words: Tensor
    offsets: Tensor
    unit: int


@dataclass(frozen=True, slots=True)
class Streams:
    """Joined streams: `words` and `offsets` int32; `firsts`: where each stream's offsets begin."""

    words: Tensor
    offsets: Tensor
    firsts: list[int]


def empty_stream(device: torch.device) -> Stream:
    """The stream of groups that have none."""
    none = torch.zeros(0, dtype=torch.int32, device=device)
    return Stream(none, none.long(), 1)


def join_streams(streams: Sequence[Stream]) -> Streams:
    """One after the other. Raises ValueError when that is too long for int32 bit offsets."""
    firsts, offsets = [], []
    word = entries = 0
    for stream in streams:
        firsts.append(entries)
        offsets.append(stream.offsets + word * stream.unit)
        word += len(stream.words)
        entries += len(stream.offsets)
    if 32 * word >= 1 << 31:
        raise ValueError("the short codes of one matrix take more than 2^31 bits")
    last = torch.zeros(_READ_AHEAD, dtype=torch.int32, device=streams[0].words.device)
    return Streams(torch.cat([*(s.words for s in streams), last]), torch.cat(offsets).int(), firsts)


def pack_codes(codes: Tensor, counts: Tensor, width: int) -> Stream:
    """Codes (uint8, `width` bits each) of supersteps that have `counts` each; the offsets are in bits."""
    offsets = (counts.cumsum(0) - counts) * width
    if not len(codes):
        return Stream(torch.zeros(0, dtype=torch.int32, device=codes.device), offsets, 32)
    down = torch.arange(width - 1, -1, -1, device=codes.device, dtype=torch.uint8)
    bits = ((codes[:, None] >> down) & 1).view(-1)
    octets = pad(bits, (0, -len(bits) % 32)).view(-1, 8)
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=codes.device, dtype=torch.uint8)
    by_word = (octets * weights).sum(1, dtype=torch.uint8).view(-1, 4)
    return Stream(by_word.flip(1).contiguous().view(torch.int32).view(-1), offsets, 32)
