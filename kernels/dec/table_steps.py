"""Look-up tables in whole steps: the fixed point in which integer tensor cores multiply them.

A row's entries are `(number + zero) * step`: step a power of two, numbers of 16 bits for tables of 8 entries
and of 15 bits for those of 16, whose lower half is negative and whose upper half is not below -128 (so one
permute instruction finds an entry or tells that it is in the other half). An entry of at least 128 steps,
about a hundredth of the row's largest, is exact in bfloat16 and in steps; smaller ones are rounded by at most
half a step: 1/16000 of the largest, or twice that where one half reaches across zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Largest distance from zero that leaves room for rounding, by bits a code.
_REACH = {3: 32_000, 4: 16_000}
# The second half's lowest number.
_UPPER_LOWEST = -128
_SMALLEST_REACH = 1e-30


@dataclass(frozen=True, slots=True)
class TableSteps:
    """Ascending numbers int32 [n_out, 2^bits]; zero int32 [n_out]; step float32 [n_out], powers of two."""

    numbers: Tensor
    zero: Tensor
    step: Tensor

    @property
    def table(self) -> Tensor:
        """The entries in ascending order, float32 [n_out, 2^bits]."""
        return (self.numbers + self.zero[:, None]).float() * self.step[:, None]


def table_steps(table: Tensor) -> TableSteps:
    """Fixed point of entries [n_out, 8 or 16], in ascending order. ValueError if one is not finite."""
    bits = table.shape[1].bit_length() - 1
    if bits not in _REACH or not torch.isfinite(table).all():
        raise ValueError(f"tables of {list(table.shape)} entries are not finite tables of 8 or 16")
    entries = table.double().sort(1).values
    below, above = entries[:, table.shape[1] // 2 - 1], entries[:, table.shape[1] // 2]
    largest = entries.abs().amax(1)
    # Where zero lies within one half, numbers reach from there to the other end.
    reach = torch.where((below > 0) | (above < 0), 2 * largest, largest) / _REACH[bits]
    step = _power_of_two_above(reach.clamp_min(_SMALLEST_REACH))
    whole = (entries / step[:, None]).round().int()
    zero = _zero(whole) if bits == 4 else torch.zeros_like(whole[:, 0])
    return TableSteps(whole - zero[:, None], zero, step)


def _power_of_two_above(reach: Tensor) -> Tensor:
    """The smallest power of two not below, float32; by its bits, for logarithms differ between devices."""
    mantissa, exponent = torch.frexp(reach)
    exponent = torch.where(mantissa > 0.5, exponent, exponent - 1)
    return (exponent.int() + 127 << 23).view(torch.float32)


def in_whole_steps(table: Tensor) -> Tensor:
    """The same table, each entry rounded to whole steps of its row (float32, still exact in bfloat16).

    Products with such a table are exact; with another they are within half a step an entry.
    """
    rounded = table_steps(table).table
    order = table.argsort(dim=1, stable=True)
    return torch.empty_like(rounded).scatter_(1, order, rounded)


def _zero(whole: Tensor) -> Tensor:
    """The number nearest to 0 that parts the halves as the permutes need it."""
    half = whole.shape[1] // 2
    return torch.maximum(torch.zeros_like(whole[:, 0]), whole[:, half - 1] + 1).minimum(
        whole[:, half] - _UPPER_LOWEST
    )
