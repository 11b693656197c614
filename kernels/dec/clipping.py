"""Round to nearest within the best share of each group's range: a few weights clipped, all others finer."""

from __future__ import annotations

import numpy as np
import torch

from kernels.dec.group_loops import best_ranges
from kernels.dec.limits import require_sound
from kernels.dec.rtn import GROUP, GroupCodes, group_count

# Shares of a group's range that are tried, the whole one first.
SHARES = np.linspace(1.0, 0.5, 11, dtype=np.float32)


def quantise_clipped(
    weight: torch.Tensor, importance: torch.Tensor, bits: int, group: int = GROUP, shares: np.ndarray = SHARES
) -> GroupCodes:
    """Round weight float32 [n_out, n_in] (finite) where each group's range loses least.

    importance: float32 [n_in], not negative; what a squared error in a column costs. One code means 0.
    """
    weight = weight.float().contiguous()
    require_sound(weight)
    n_out, n_in = weight.shape
    step, lowest = np.empty((2, n_out, group_count(n_in, group)), np.float32)
    top = np.float32(2**bits - 1)
    best_ranges(weight.numpy(), importance.float().contiguous().numpy(), group, shares, top, step, lowest)
    scale = torch.from_numpy(step).bfloat16().float()
    zero = (torch.from_numpy(lowest) + 2 ** (bits - 1)).mul_(torch.from_numpy(step)).bfloat16().float()
    return nearest_codes(weight, scale, zero, bits, group)


def nearest_codes(
    weight: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, bits: int, group: int = GROUP
) -> GroupCodes:
    """The base of these scales and zeros [n_out, n_groups] that lies nearest to weight [n_out, n_in]."""
    index, half = torch.arange(weight.shape[1]) // group, 2 ** (bits - 1)
    codes = (weight - zero[:, index]).div_(scale[:, index]).round_().clamp_(-half, half - 1).add_(half)
    return GroupCodes(bits, group, codes.to(torch.uint8), scale, zero)
