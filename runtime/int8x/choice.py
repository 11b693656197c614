"""Which codec a tensor gets: the smallest by exact size, or the one that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from kernels.int8x import AdaptivePlan, check_levels, histogram, plan_adaptive
from kernels.int8x.levels import Levels, best_levels, coded_bytes, level_counts

Codec = Literal["auto", "adaptive", "bitmap", "raw"]
CODECS: tuple[Codec, ...] = get_args(Codec)

# A plan for adaptive planes, levels for nested bitmaps, None for plain bytes.
Form = AdaptivePlan | Levels | None


@dataclass(frozen=True, slots=True)
class CodecChoice:
    """How matrices are coded: "auto" takes what is smallest for each.

    `levels`: for bitmaps only; None searches the best of each matrix. ValueError for codecs and levels that
    do not exist.
    """

    codec: Codec = "auto"
    levels: Levels | None = None

    def __post_init__(self) -> None:
        if self.codec not in CODECS:
            raise ValueError(f"{self.codec!r} is no codec")
        if self.levels is not None:
            if self.codec != "bitmap":
                raise ValueError("levels belong to the codec bitmap")
            object.__setattr__(self, "levels", check_levels(self.levels))

    def describe(self) -> dict[str, Any]:
        """What is written down about it."""
        return {"codec": self.codec, "levels": list(self.levels) if self.levels else None}

    def form(self, q: torch.Tensor) -> Form:
        """The form of int8 q [n_out, n_in]; ValueError if forced levels cannot hold it."""
        if self.codec == "raw":
            return None
        if self.codec == "bitmap":
            counts = histogram(q)
            levels = self.levels or best_levels(counts)
            level_counts(counts, levels)
            return levels
        plan = plan_adaptive(q)
        return plan if self.codec == "adaptive" else _smallest(plan, q.numel())


def _smallest(plan: AdaptivePlan, raw_bytes: int) -> Form:
    """Of equal sizes the one that decodes fastest."""
    levels = best_levels(plan.histogram)
    sizes: list[tuple[int, Form]] = [
        (raw_bytes, None),
        (plan.nbytes, plan),
        (coded_bytes(level_counts(plan.histogram, levels), levels), levels),
    ]
    return min(sizes, key=lambda pair: pair[0])[1]
