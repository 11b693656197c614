"""Short codes as one bit stream in int32 words, most significant bit first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

# A warp reads a whole line of 32 words from any offset, and the word after each.
_READ_AHEAD = 64


@dataclass(frozen=True, slots=True)
class Streams:
    """`words` int32; `offsets` int32: first bit of each superstep; `firsts`: where each part's offsets begin."""

    words: Tensor
    offsets: Tensor
    firsts: list[int]


def pack_streams(parts: Sequence[tuple[Tensor, int, Tensor]], device: torch.device) -> Streams:
    """Pack parts of (codes uint8, bits a code, codes in each superstep), one after the other.

    Every part starts at a word. Raises ValueError when the stream is too long for int32 bit offsets.
    """
    words, offsets, firsts = [], [], []
    bit = entries = 0
    for codes, width, counts in parts:
        firsts.append(entries)
        packed = _pack(codes, width)
        words.append(packed)
        offsets.append(bit + (counts.cumsum(0) - counts) * width)
        bit += 32 * len(packed)
        entries += len(counts)
    if bit >= 1 << 31:
        raise ValueError("the escapes of one matrix take more than 2^31 bits")
    words.append(torch.zeros(_READ_AHEAD, dtype=torch.int32, device=device))
    return Streams(torch.cat(words), torch.cat(offsets).int(), firsts)


def _pack(codes: Tensor, width: int) -> Tensor:
    if not len(codes):
        return torch.zeros(0, dtype=torch.int32, device=codes.device)
    down = torch.arange(width - 1, -1, -1, device=codes.device, dtype=torch.uint8)
    bits = ((codes[:, None] >> down) & 1).view(-1)
    octets = pad(bits, (0, -len(bits) % 32)).view(-1, 8)
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=codes.device, dtype=torch.uint8)
    bytes_ = (octets * weights).sum(1, dtype=torch.uint8).view(-1, 4)
    return bytes_.flip(1).contiguous().view(torch.int32).view(-1)
