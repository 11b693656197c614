"""The (3, 5, 8) bitmap re-arranged for warps, packed by torch operations on any device.

A weight q is 8 j + m - 4 with 0 <= m <= 7. Level 1 (j = 0: -4..3) is its 3 bits m. Level 2 (j is -2, -1, 1 or
2: the rest of -20..19) has its flag set and 2 more bits that name j; 5 bits reach further than the paper's,
because a flagged weight never repeats a value of level 1. Level 3 keeps m, unflagged, and the rest, 8 j, is a
16-bit entry of a list: its column and j, in place of the second bitmap. Levels: the INT8-X paper.

In a step of 128 columns one lane of a warp holds 32 columns of a row: three words of 3-bit fields and one of
flags. Columns of a lane are numbered 8 k + 2 i + h: pair k, byte i, half h.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

ROWS = 8
STEP = 128
SUPERSTEP = 4
PATCH_COLUMNS = 2048
MAX_COLUMNS = 256 * PATCH_COLUMNS
WORD_PATCHES = 2
# What the kernel's bytes, 8 (j + 2) + m, exceed the weights by.
BYTE_OFFSET = 20
# Words past the last code that a lane may load together with it.
CODE_GUARD = 4

_PACK_ROWS = 4096


@dataclass(frozen=True, slots=True)
class BitmapPlanes:
    """Weights [n_out, n_in] for `bitmap_product`; groups of 8 rows, heaviest lists first, padded with zeros.

    `words` int32 [groups, steps, 32 lanes, 4]; `codes` int32: 2 bits a flagged weight, in the order group,
    superstep of 4 steps, lane, step, k, h, i; `offsets` int32 [groups * supersteps]: codes before each.
    `patches` int32 [rounds, 32 lanes]: two entries a word, a column within 2048 and j (upper 5 bits, its gap
    closed); `parts` uint8 [rounds]: which 2048 columns; `rounds` int32 [groups + 1]: those before each group.
    `rows` int32: where each row belongs. `scale` float32 [1] or [n_out] in the matrix's own order.
    """

    n_out: int
    n_in: int
    words: torch.Tensor
    codes: torch.Tensor
    offsets: torch.Tensor
    patches: torch.Tensor
    parts: torch.Tensor
    rounds: torch.Tensor
    rows: torch.Tensor
    scale: torch.Tensor

    @property
    def steps(self) -> int:
        """Steps of 128 columns, the last padded."""
        return -(-self.n_in // STEP)

    @property
    def groups(self) -> int:
        """Groups of 8 rows, the last padded."""
        return -(-self.n_out // ROWS)

    @property
    def nbytes(self) -> int:
        """Bytes of everything, padding included."""
        return sum(part.numel() * part.element_size() for part in (*self.tensors, self.scale))

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """What the kernel reads besides the scale, in its order."""
        sparse = (self.patches, self.parts, self.rounds)
        return (self.words, self.codes, self.offsets, *sparse, self.rows)


def pack_bitmap(q: torch.Tensor, scale: torch.Tensor) -> BitmapPlanes:
    """q int8 [n_out, n_in] and scale float32 [1] or [n_out]; the result lies where q does."""
    n_out, n_in = q.shape
    if q.dtype != torch.int8 or not 0 < q.numel() < 2**31:
        raise ValueError(f"{q.dtype} weights {list(q.shape)} are not an int8 matrix of 1 to 2^31 - 1 weights")
    if n_in > MAX_COLUMNS:
        raise ValueError(f"{n_in} columns are more than {MAX_COLUMNS}")
    if scale.dtype != torch.float32 or scale.shape not in ((1,), (n_out,)):
        raise ValueError(f"a scale {list(scale.shape)} does not belong to {n_out} rows")
    rows = _heaviest_first(q)
    padded = torch.nn.functional.pad(q, (0, -n_in % STEP, 0, -n_out % ROWS))[rows]
    packed = [_pack_rows(part) for part in padded.split(_PACK_ROWS)]
    words, codes, counts, patches, parts, rounds = (torch.cat(own) for own in zip(*packed, strict=True))
    offsets = (counts.cumsum(0) - counts).to(torch.int32)
    starts = torch.nn.functional.pad(rounds.cumsum(0), (1, 0)).to(torch.int32)
    sparse = (patches, parts, starts)
    return BitmapPlanes(
        n_out, n_in, words, _packed_codes(codes), offsets, *sparse, rows.to(torch.int32), scale
    )


def _heaviest_first(q: torch.Tensor) -> torch.Tensor:
    # Rows of one warp then end together, and the longest lists start first.
    counts = torch.cat([(_blocks_of_eight(part).abs() > 2).sum(1) for part in q.split(_PACK_ROWS)])
    padded = torch.nn.functional.pad(counts, (0, -q.shape[0] % ROWS), value=-1)
    return padded.argsort(descending=True, stable=True)


def _blocks_of_eight(q: torch.Tensor) -> torch.Tensor:
    return (q.to(torch.int16) + 4) >> 3


def _pack_rows(q: torch.Tensor) -> tuple[torch.Tensor, ...]:
    j = _blocks_of_eight(q)
    level3 = j.abs() > 2
    flags = _fragments(((j != 0) & ~level3).to(torch.uint8))
    low = _fragments(((q.to(torch.int16) + 4) & 7).to(torch.uint8))
    high = _fragments(torch.where(j < 0, j + 2, j + 1).to(torch.uint8))
    words = torch.cat([_three_bit_words(low), _flag_words(flags)], -1)
    chosen = _lane_order(flags).bool()
    return (words, _lane_order(high)[chosen], chosen.sum((2, 3, 4)).reshape(-1), *_patch_rounds(j, level3))


def _fragments(values: torch.Tensor) -> torch.Tensor:
    """[R, n_in] as [groups, steps, 32 lanes, 4 k, 2 h, 4 i]."""
    split = values.reshape(-1, ROWS, values.shape[1] // STEP, 4, 4, 4, 2).permute(0, 2, 1, 3, 4, 6, 5)
    return split.reshape(*split.shape[:2], 32, 4, 2, 4)


def _three_bit_words(low: torch.Tensor) -> torch.Tensor:
    fields = low[..., 0, :] | (low[..., 1, :] << 3)
    spare = torch.stack([(fields[..., 3, :] >> (2 * word)) & 3 for word in range(3)], -2)
    return (fields[..., :3, :] | (spare << 6)).contiguous().view(torch.int32).squeeze(-1)


def _flag_words(flags: torch.Tensor) -> torch.Tensor:
    place = torch.arange(0, 32, 4, device=flags.device) + torch.arange(4, device=flags.device)[:, None]
    return (flags.flatten(-2).to(torch.int64) << place).sum((-2, -1)).to(torch.int32)[..., None]


def _lane_order(values: torch.Tensor) -> torch.Tensor:
    """Fragments as [groups, supersteps, 32 lanes, 4 steps, 32], steps padded with zeros."""
    flat = values.flatten(-3)
    padded = torch.nn.functional.pad(flat, (0, 0, 0, 0, 0, -flat.shape[1] % SUPERSTEP))
    return padded.reshape(flat.shape[0], -1, SUPERSTEP, 32, 32).transpose(2, 3)


def _packed_codes(codes: torch.Tensor) -> torch.Tensor:
    quads = torch.nn.functional.pad(codes, (0, -codes.numel() % 16 + 16 * CODE_GUARD)).reshape(-1, 4)
    packed = quads[:, 0] | (quads[:, 1] << 2) | (quads[:, 2] << 4) | (quads[:, 3] << 6)
    return packed.view(torch.int32)


def _patch_rounds(j: torch.Tensor, level3: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    parts = -(-j.shape[1] // PATCH_COLUMNS)
    row, column = level3.nonzero(as_tuple=True)
    line = row * parts + column // PATCH_COLUMNS
    counts = torch.bincount(line, minlength=j.shape[0] * parts)
    rank = torch.arange(row.numel(), device=j.device) - (counts.cumsum(0) - counts)[line]
    longest = counts.reshape(-1, ROWS, parts).amax(1)
    rounds = -(-longest // (4 * WORD_PATCHES))
    before = (rounds.reshape(-1).cumsum(0) - rounds.reshape(-1)).reshape(rounds.shape)
    first = before[row // ROWS, column // PATCH_COLUMNS]
    gapless = j[row, column].to(torch.int32)
    gapless -= (gapless > 0).to(torch.int32)
    entries = torch.zeros(int(rounds.sum()), ROWS, 4, WORD_PATCHES, dtype=torch.int16, device=j.device)
    place = (first + rank // (4 * WORD_PATCHES), row % ROWS, rank % 4, rank // 4 % WORD_PATCHES)
    entries[place] = ((gapless << 11) | (column % PATCH_COLUMNS)).to(torch.int16)
    part_of_round = torch.arange(parts, device=j.device).repeat(rounds.shape[0])
    named = part_of_round.to(torch.uint8).repeat_interleave(rounds.reshape(-1))
    return entries.view(torch.int32).reshape(-1, 32), named, rounds.sum(1)
