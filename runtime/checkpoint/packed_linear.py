"""One linear of a packed checkpoint as integers and scales, and the base that it becomes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernels.dec.rtn import GROUP, GroupCodes, group_count

BITS = 4
NIBBLES = 8


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A weight is `(code - zero) * scale`, its zero and scale those of its row's group of inputs.

    codes uint8 [n_out, n_in], zeros uint8 [n_out, groups], both below 16; scales float32 [n_out, groups].
    """

    codes: torch.Tensor
    zeros: torch.Tensor
    scales: torch.Tensor
    group: int

    def __post_init__(self) -> None:
        n_out, n_in = self.codes.shape
        tables = (n_out, group_count(n_in, self.group))
        if tuple(self.zeros.shape) != tables or tuple(self.scales.shape) != tables:
            raise ValueError(
                f"zeros {list(self.zeros.shape)} and scales {list(self.scales.shape)} must be {tables}"
            )

    def base(self, rows: torch.Tensor | None = None) -> GroupCodes:
        """The linear as a base, its rows multiplied by `rows` (float32 [n_out]) where given.

        Scale and zero are rounded to bfloat16, by at most 2**-8 of 15 and of 8 steps: together 9 % of a step,
        where rounding the weight cost up to 50 %. The residual is taken against what results, so it holds
        that too. Groups of whole multiples of 128, or of a whole row, are written as groups of 128.
        """
        scale = self.scales if rows is None else self.scales * rows[:, None]
        scale = scale.bfloat16().float()
        zero = ((2 ** (BITS - 1) - self.zeros.float()) * scale).bfloat16().float()
        n_in = self.codes.shape[1]
        group = self.group
        if group % GROUP == 0 or group >= n_in:
            group = GROUP
            index = torch.arange(group_count(n_in, GROUP)) * GROUP // self.group
            scale, zero = scale[:, index], zero[:, index]
        return GroupCodes(BITS, group, self.codes, scale, zero)


def stacked(parts: list[PackedLinear]) -> PackedLinear:
    """Linears over the same inputs as one, their rows in order; ValueError where their groups differ."""
    if len({part.group for part in parts}) != 1:
        raise ValueError("linears of different groups cannot be stacked")
    tables = ([p.codes for p in parts], [p.zeros for p in parts], [p.scales for p in parts])
    codes, zeros, scales = map(torch.cat, tables)
    return PackedLinear(codes, zeros, scales, parts[0].group)


def nibbles(words: torch.Tensor) -> torch.Tensor:
    """int32 [a, b] -> uint8 [a, b, 8], the lowest four bits first."""
    pairs = words.contiguous().view(torch.uint8).view(*words.shape, NIBBLES // 2)
    return torch.stack([pairs & 15, pairs >> 4], dim=-1).view(*words.shape, NIBBLES)
