"""Which weights can be quantised at all."""

from __future__ import annotations

import torch

# Far beyond any model's: larger ones overflow when errors are squared and summed.
LARGEST_WEIGHT = 1e15


def require_sound(weight: torch.Tensor) -> None:
    """ValueError for a weight that holds NaN, an infinity, or a value whose square float32 cannot sum up."""
    least, largest = weight.aminmax()
    if not (float(least) >= -LARGEST_WEIGHT and float(largest) <= LARGEST_WEIGHT):
        raise ValueError("the weight holds a value that is not finite, or beyond all reason")
