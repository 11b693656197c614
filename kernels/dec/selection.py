"""Which input channels are corrected: boolean masks [tokens, n_in] for inputs x [tokens, n_in].

Every rule works chunk by chunk and takes `chunk_share(k_chunk, length)` channels of each, ties by lowest
index, so a result never depends on a race. A value that is not a number counts as zero magnitude.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from kernels.dec.chunks import CHUNK, chunk_bounds, chunk_share

BUCKETS_PER_HALF = 16

_Rank = Callable[[torch.Tensor, int, int], torch.Tensor]


def bucket_bounds(profile: torch.Tensor, k: int) -> tuple[float, float]:
    """(bk0, bk15) of one chunk: first and k-th entry of its profile (float32, descending); k at least 1."""
    return float(profile[0]), float(profile[k - 1])


def bucket_mask(x: torch.Tensor, k_chunk: int, profile: torch.Tensor) -> torch.Tensor:
    """The paper's approximate top-k: 16 equal buckets from bk0 down to bk15, 16 from bk15 to zero.

    Whole buckets are taken from the top; the bucket that does not fit whole is filled by lowest index.
    profile float32 [n_in]: for each chunk its calibrated magnitudes in descending order.
    """

    def rank(part: torch.Tensor, start: int, k: int) -> torch.Tensor:
        bk0, bk15 = bucket_bounds(profile[start : start + part.shape[1]], k)
        return _buckets(part, bk0, bk15)

    return _mask(x, k_chunk, rank)


def exact_mask(x: torch.Tensor, k_chunk: int) -> torch.Tensor:
    """The true largest magnitudes of every chunk."""
    return _mask(x, k_chunk, lambda part, start, k: -_ordered_bits(part))


def static_mask(x: torch.Tensor, k_chunk: int, importance: torch.Tensor) -> torch.Tensor:
    """The same channels for every token: those of largest `importance` (float32 [n_in], not negative)."""

    def rank(part: torch.Tensor, start: int, k: int) -> torch.Tensor:
        return -_ordered_bits(importance[start : start + part.shape[1]]).expand(part.shape)

    return _mask(x, k_chunk, rank)


def random_mask(x: torch.Tensor, k_chunk: int, generator: torch.Generator) -> torch.Tensor:
    """The control: channels drawn afresh for every token from a seeded generator."""

    def rank(part: torch.Tensor, start: int, k: int) -> torch.Tensor:
        return torch.randint(1 << 40, part.shape, generator=generator)

    return _mask(x, k_chunk, rank)


def _mask(x: torch.Tensor, k_chunk: int, rank: _Rank) -> torch.Tensor:
    """The lowest ranks of every chunk; their low bits are the index, so that ties go to the lowest."""
    magnitude = x.float().abs().nan_to_num(nan=0.0, posinf=torch.inf)
    mask = torch.zeros(x.shape, dtype=torch.bool)
    for start, stop in chunk_bounds(x.shape[1]):
        k = chunk_share(k_chunk, stop - start)
        if k > 0:
            keys = rank(magnitude[:, start:stop], start, k).long() * CHUNK + torch.arange(stop - start)
            mask[:, start:stop].scatter_(1, keys.topk(k, dim=1, largest=False, sorted=False).indices, True)
    return mask


def _ordered_bits(values: torch.Tensor) -> torch.Tensor:
    """Bit patterns int64 of floats that are not negative: they ascend as the values do."""
    return values.float().contiguous().view(torch.int32).long()


def _buckets(magnitude: torch.Tensor, bk0: float, bk15: float) -> torch.Tensor:
    """Bucket 0 (largest) .. 31 of each magnitude, in float32 with one subtraction and one product each."""
    top, middle = torch.tensor(bk0), torch.tensor(bk15)
    width = top - middle
    upper = (top - magnitude) * (BUCKETS_PER_HALF / width if width > 0 else torch.tensor(0.0))
    lower = (middle - magnitude) * (BUCKETS_PER_HALF / middle if middle > 0 else torch.tensor(0.0))
    last = BUCKETS_PER_HALF - 1
    high = upper.nan_to_num(nan=0.0).clamp(0, last).int()
    low = lower.clamp(0, last).int() + BUCKETS_PER_HALF
    return torch.where(magnitude >= middle, high, low)
