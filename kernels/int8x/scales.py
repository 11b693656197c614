"""What the integers of a matrix stand for: value[o, i] = q[o, i] * step[o] * rows[o] / columns[i]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

# One step for the matrix; one per row; one with optional factors of 2^(k/16) for rows and columns.
Granularity = Literal["tensor", "row", "aware"]
GRANULARITIES: tuple[Granularity, ...] = ("tensor", "row", "aware")
FactorName = Literal["rows", "columns"]
FACTOR_NAMES: tuple[FactorName, ...] = ("rows", "columns")

FACTORS_PER_OCTAVE = 16
ONE = 128
# 2^(k/16) as float32 bits: a library's power function may differ in the last bit from one machine to another.
_MANTISSAS = (
    0x3F800000,
    0x3F85AAC3,
    0x3F8B95C2,
    0x3F91C3D3,
    0x3F9837F0,
    0x3F9EF532,
    0x3FA5FED7,
    0x3FAD583F,
    0x3FB504F3,
    0x3FBD08A4,
    0x3FC5672A,
    0x3FCE248C,
    0x3FD744FD,
    0x3FE0CCDF,
    0x3FEAC0C7,
    0x3FF5257D,
)


def factors(codes: torch.Tensor) -> torch.Tensor:
    """The factors 2^((u - 128) / 16) of codes uint8, float32 of the same shape; exact on every platform."""
    u = codes.to(torch.int32) - ONE
    mantissa = torch.tensor(_MANTISSAS, dtype=torch.int32)[(u % FACTORS_PER_OCTAVE).long()]
    return (mantissa + (u.div(FACTORS_PER_OCTAVE, rounding_mode="floor") << 23)).view(torch.float32)


def factor_codes(values: torch.Tensor) -> torch.Tensor:
    """Codes uint8 of the factors nearest (in logarithm) to positive values, within the table's range."""
    steps = torch.round(torch.log2(values.double()) * FACTORS_PER_OCTAVE) + ONE
    return steps.clamp(0, 255).to(torch.uint8)


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of a matrix [n_out, n_in].

    scale: float32 [1] for "tensor" and "aware", [n_out] for "row". rows uint8 [n_out] and columns uint8
    [n_in]: codes of factors (see `factors`), for "aware" only, each may be left out. ValueError for wrong
    types and values; that lengths belong to a matrix is checked by `check_shape`.
    """

    granularity: Granularity
    scale: torch.Tensor
    rows: torch.Tensor | None = None
    columns: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if self.granularity not in GRANULARITIES:
            raise ValueError(f"{self.granularity!r} is no scale granularity")
        _check_flat("scale", self.scale, torch.float32)
        if self.granularity != "row" and self.scale.numel() != 1:
            raise ValueError(f"{self.scale.numel()} scales where one belongs")
        for name in self.factor_names:
            if self.granularity != "aware":
                raise ValueError(f'{name} factors belong to the granularity "aware" only')
            _check_flat(name, getattr(self, name), torch.uint8)
        steps = self.scale if self.rows is None else self.scale * factors(self.rows)
        if not (torch.isfinite(steps) & (steps > 0)).all():
            raise ValueError("scales are not all positive finite numbers")

    def check_shape(self, n_out: int, n_in: int) -> None:
        """ValueError unless these scales belong to a matrix of that shape."""
        wanted = {"rows": n_out, "columns": n_in} | ({"scale": n_out} if self.granularity == "row" else {})
        for name, part in self.parts().items():
            if part.numel() != wanted.get(name, 1):
                raise ValueError(f"{name} has {part.numel()} entries for a matrix of {n_out} x {n_in}")

    def row_scale(self, n_out: int) -> torch.Tensor:
        """What a row of q is multiplied by, float32 [n_out], or [1] if it is the same for all."""
        if self.granularity == "row" and self.scale.numel() != n_out:
            raise ValueError(f"{self.scale.numel()} scales for {n_out} rows")
        return self.scale if self.rows is None else self.scale * factors(self.rows)

    def column_scale(self) -> torch.Tensor | None:
        """What a column of q is divided by, float32 [n_in]; None if nothing."""
        return None if self.columns is None else factors(self.columns)

    @property
    def factor_names(self) -> tuple[FactorName, ...]:
        """Which factors are there."""
        return tuple(name for name in FACTOR_NAMES if getattr(self, name) is not None)

    def parts(self) -> dict[str, torch.Tensor]:
        """What is stored, by name."""
        return {name: getattr(self, name) for name in ("scale", *self.factor_names)}

    def same_as(self, other: Scales) -> bool:
        """Whether every stored bit is the same."""
        mine, theirs = self.parts(), other.parts()
        same_kind = self.granularity == other.granularity and mine.keys() == theirs.keys()
        return same_kind and all(torch.equal(part, theirs[name]) for name, part in mine.items())


def _check_flat(name: str, part: torch.Tensor, dtype: torch.dtype) -> None:
    if part.dtype != dtype or part.dim() != 1 or not part.numel():
        raise ValueError(f"{name} is not a flat {str(dtype).removeprefix('torch.')} tensor")
