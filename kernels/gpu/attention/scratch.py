"""What the programs of `decode_attention` tell each other when several share a head, and how they share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# More programs for a head cost more when their results are combined than they save: one program reads all.
_MOST_SPLITS = 32
# What a device without multiprocessors is taken to have.
_MULTIPROCESSORS = 16
_PROGRAMS_EACH = 2
_SHARE = 64
_MOST_GROUP = 16
_LEAST_WIDTH = 16
_MOST_WIDTH = 256


def padded(count: int, least: int = 1) -> int:
    """The power of two at or above `count` and `least`."""
    return 1 << (max(count, least) - 1).bit_length()


def padded_width(head_dim: int) -> int:
    """Columns of a tile that holds a head. Raises ValueError for one that is odd or too wide."""
    if not 0 < head_dim <= _MOST_WIDTH or head_dim % 2:
        raise ValueError(f"heads are even and up to {_MOST_WIDTH} wide, not {head_dim}")
    return padded(head_dim, _LEAST_WIDTH)


@dataclass(frozen=True, slots=True)
class AttentionScratch:
    """Buffers for layers of one shape; those of a step may all use the same.

    partial  float32 [kv_heads, splits, heads of a group padded, head_dim padded]: weighted sums of values.
    weights  float32 [kv_heads, splits, 2, heads padded]: largest score (base 2), sum of 2^(score - largest).
    arrived  int32 [kv_heads]: programs done with a head; 0 between kernels.
    Two shares of positions are read by one program a head, more by one for each share, `splits` at most.
    """

    partial: Tensor
    weights: Tensor
    arrived: Tensor
    share: int = _SHARE

    def __post_init__(self) -> None:
        heads, splits, rows, _ = self.partial.shape
        if self.weights.shape != (heads, splits, 2, rows) or self.arrived.shape != (heads,):
            raise ValueError(f"buffers do not fit partial sums {list(self.partial.shape)}")
        if splits != padded(splits) or self.share < 1:
            raise ValueError(f"{splits} programs cannot share by {self.share}: a power of two can")

    @property
    def splits(self) -> int:
        """The most programs that share a head."""
        return self.partial.shape[1]


def new_attention_scratch(
    kv_heads: int,
    group: int,
    head_dim: int,
    device: torch.device | str,
    *,
    splits: int | None = None,
    share: int = _SHARE,
) -> AttentionScratch:
    """Buffers for `group` query heads to each of `kv_heads`; `splits`, a power of two, by default fills the
    device. Raises ValueError for a group of more than 16.
    """
    if not 1 <= group <= _MOST_GROUP:
        raise ValueError(f"1 to {_MOST_GROUP} query heads share keys and values, not {group}")
    splits = splits if splits is not None else _default_splits(kv_heads, torch.device(device))
    rows = padded(group)
    shape = (kv_heads, splits, rows, padded_width(head_dim))
    return AttentionScratch(
        partial=torch.empty(shape, dtype=torch.float32, device=device),
        weights=torch.empty(kv_heads, splits, 2, rows, dtype=torch.float32, device=device),
        arrived=torch.zeros(kv_heads, dtype=torch.int32, device=device),
        share=share,
    )


def _default_splits(kv_heads: int, device: torch.device) -> int:
    """The power of two at or below two programs a multiprocessor."""
    count = _MULTIPROCESSORS
    if device.type == "cuda":
        count = torch.cuda.get_device_properties(device).multi_processor_count
    return min(_MOST_SPLITS, padded(max(1, _PROGRAMS_EACH * count // kv_heads) + 1) // 2)
