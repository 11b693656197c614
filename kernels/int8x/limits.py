"""What any coder of single symbols can reach on a tensor: Shannon entropy and a real Huffman code."""

from __future__ import annotations

import heapq
from itertools import count

import torch


def histogram(q: torch.Tensor) -> torch.Tensor:
    """Occurrences of each int8 value: int64 [256], index q + 128."""
    flat = q.reshape(-1).view(torch.uint8)
    return torch.bincount(flat, minlength=256).roll(128)


def entropy_bits(counts: torch.Tensor) -> float:
    """Shannon entropy of a histogram in bits per symbol."""
    share = counts[counts > 0].double()
    share /= share.sum()
    return float(-(share * share.log2()).sum()) + 0.0


def huffman_lengths(counts: torch.Tensor) -> torch.Tensor:
    """Code length of every symbol in an optimal prefix code: int64, 0 for symbols that never occur.

    A lone symbol takes one bit, as in every real Huffman format. Source: Huffman 1952.
    """
    lengths = torch.zeros(len(counts), dtype=torch.int64)
    present = [(int(n), symbol) for symbol, n in enumerate(counts.tolist()) if n]
    if len(present) == 1:
        lengths[present[0][1]] = 1
        return lengths
    tie = count()
    heap = [(n, next(tie), [symbol]) for n, symbol in present]
    heapq.heapify(heap)
    while len(heap) > 1:
        low, high = heapq.heappop(heap), heapq.heappop(heap)
        symbols = low[2] + high[2]
        lengths[symbols] += 1
        heapq.heappush(heap, (low[0] + high[0], next(tie), symbols))
    return lengths


def huffman_bits(counts: torch.Tensor) -> float:
    """Mean code length of the histogram's Huffman code in bits per symbol, code table not counted."""
    return float((huffman_lengths(counts) * counts).sum()) / float(counts.sum())
