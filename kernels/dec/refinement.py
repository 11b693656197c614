"""Refinement of group codes: codes, scales and zeros take turns at their best values given all others.

The loss is tr(E H E'), E = W - base and H the second moment of the inputs. Group by group, codes move by
coordinate descent (as in QuantEase, Behdin et al. 2023), then each row's scale and zero by least squares;
both are kept exact in bfloat16, and a change of theirs is taken only where it lowers the loss.
"""

from __future__ import annotations

import numpy as np
import torch

from kernels.dec.group_loops import descend
from kernels.dec.rtn import GroupCodes, dequantise
from kernels.int8x.pool import for_tiles

# Scales that least squares would shrink further, or make negative, stay as they are.
LEAST_SHARE = 0.3


def refine(weight: torch.Tensor, moment: torch.Tensor, base: GroupCodes, sweeps: int) -> GroupCodes:
    """A base for weight float32 [n_out, n_in] that loses no more than `base`.

    moment: float32 [n_in, n_in], positive definite. A sweep costs as much as the product weight @ moment.
    """
    codes, scale, zero = base.codes.clone(), base.scale.clone(), base.zero.clone()
    error = weight - dequantise(base)
    for _ in range(sweeps):
        slope = error @ moment
        for number, start in enumerate(range(0, weight.shape[1], base.group)):
            part = slice(start, start + base.group)
            group = _Group(weight[:, part], codes[:, part], scale[:, number], zero[:, number], base.bits)
            group.improve(slope[:, part], moment[part, part])
            codes[:, part], scale[:, number], zero[:, number] = group.codes, group.scale, group.zero
            after = group.error()
            slope += (after - error[:, part]) @ moment[part]
            error[:, part] = after
    return GroupCodes(base.bits, base.group, codes, scale, zero)


class _Group:
    """One group of columns: weight [n, m], codes uint8 [n, m], scale and zero [n]."""

    def __init__(
        self, weight: torch.Tensor, codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, bits: int
    ) -> None:
        self.weight, self.half = weight, 2 ** (bits - 1)
        self.codes, self.scale, self.zero = codes.contiguous(), scale.contiguous(), zero.contiguous()

    def error(self) -> torch.Tensor:
        """Weight minus base, float32 [n, m]."""
        return self.weight - (self._centred() * self.scale[:, None] + self.zero[:, None])

    def improve(self, slope: torch.Tensor, moment: torch.Tensor) -> None:
        """Codes, then scale and zero. slope [n, m]: (all errors @ H) here; moment [m, m]: H here."""
        slope = slope.clone()
        self._move_codes(slope.numpy(), moment.contiguous().numpy())
        self._fit(slope, moment)

    def _move_codes(self, slope: np.ndarray, moment: np.ndarray) -> None:
        codes, scale, top = self.codes.numpy(), self.scale.numpy(), np.float32(2 * self.half - 1)
        for_tiles(
            len(codes),
            codes.shape[1],
            lambda a, b: descend(slope[a:b], moment, scale[a:b], top, codes[a:b]),
        )

    def _fit(self, slope: torch.Tensor, moment: torch.Tensor) -> None:
        """Least squares of scale and zero: two normal equations a row."""
        centred = self._centred()
        moved, ones = centred @ moment, moment.sum(0)
        ss, sz, zz = (moved * centred).sum(1), centred @ ones, ones.sum()
        by_scale, by_zero = (centred * slope).sum(1), slope.sum(1)
        det = ss * zz - sz * sz
        change = torch.where(det > 1e-6 * ss * zz, (zz * by_scale - sz * by_zero) / det, 0)
        wanted = _bf16(self.scale + change)
        scale = torch.where(wanted > LEAST_SHARE * self.scale, wanted, self.scale)
        by = scale - self.scale
        zero = _bf16(self.zero + (by_zero - sz * by) / zz)
        to = zero - self.zero
        gain = 2 * (by_scale * by + by_zero * to) - (ss * by * by + 2 * sz * by * to + zz * to * to)
        self.scale, self.zero = (
            torch.where(gain > 0, new, old) for new, old in ((scale, self.scale), (zero, self.zero))
        )

    def _centred(self) -> torch.Tensor:
        return self.codes.float() - self.half


def _bf16(values: torch.Tensor) -> torch.Tensor:
    return values.bfloat16().float()
