"""Plain torch forms of the kernels' selection and correction."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.dec.chunks import chunk_bounds, chunk_share
from kernels.dec.residual import unpack_nibbles

BUCKETS = 64
# Buckets are told apart by a float's exponent and the upper 3 bits of its fraction: 8 an octave.
BUCKET_SHIFT = 20


def log_buckets(part: Tensor) -> Tensor:
    """int64 bucket of every value of a chunk (float32 [n]): 0 next to the largest magnitude, 8 an octave."""
    bits = part.abs().contiguous().view(torch.int32).long()
    return ((bits.max() - bits) >> BUCKET_SHIFT).clamp_max(BUCKETS - 1)


def select_channels(x: Tensor, k_chunk: int) -> Tensor:
    """The channels int64 that the kernel lists for x float32 [columns], in the list's order.

    Whole buckets (but the last) from the top while they fit k_chunk's share of the chunk, by index; then the
    next one's lowest indices. Nothing for an x that is not finite.
    """
    if not torch.isfinite(x).all():
        return torch.zeros(0, dtype=torch.int64)
    lists = [torch.zeros(0, dtype=torch.int64)]
    for start, stop in chunk_bounds(x.numel()):
        bucket = log_buckets(x[start:stop])
        k = chunk_share(k_chunk, stop - start)
        sizes = torch.bincount(bucket, minlength=BUCKETS).cumsum(0)
        whole = int((sizes[:-1] <= k).sum())
        full = (bucket < whole).nonzero()[:, 0]
        partly = (bucket == whole).nonzero()[: k - full.numel(), 0]
        lists += [full + start, partly + start]
    return torch.cat(lists)


def correction(words: Tensor, scale: Tensor, channels: Tensor, values: Tensor) -> Tensor:
    """scale * sum of value * residual row over the listed channels, float64 [n_out]."""
    codes = unpack_nibbles(words[channels], scale.numel()).double()
    return (values.double() @ codes) * scale.double()
