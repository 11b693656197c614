"""Activations for the products: digits in fragment order, made by one kernel with its prologues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import torch
from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.dec.selection import Selection
from kernels.gpu.digits import CHUNK, Extras
from kernels.gpu.fields import LANES, STEP_COLUMNS
from kernels.gpu.prepare_kernel import prepare_kernel

MOST_VECTORS = 8
# Steps of zeros after the last: what a warp without further work multiplies with.
_ZERO_STEPS = 4
# Columns a program reads at once when it looks for the largest, so that all its reads are under way together.
_BLOCK = 8192


class Prologue(IntEnum):
    """What `prepare` does to x before it takes digits."""

    NONE = 0
    RMS_NORM = 1
    SILU_MUL = 2
    GELU_MUL = 3


@dataclass(frozen=True, slots=True)
class Prepared:
    """`used` vectors of `columns`, kept as `batch` (1, 2, 4 or 8) of them.

    Every value is `number * x_scale` with an integer of 30 bits and sign, in four signed base-256 digits.

    digits      int32 [steps, batch, 32 lanes, 4]: the B fragments of mma, digit d of half t in column 2 d +
    t. x_scale  float32 [batch, chunks of 1024 columns]: powers of two, NaN where the chunk is not finite.
    After a norm, `eps` of it is set and 1 / rms left out of all values: squares float32 [batch, chunks] has
    the sums that make it.

    Of `extras`, products of one kind of weights need some, and only those have been filled:
    GROUP_SUMS  group_sums  float32 [batch, steps]: sums of the values in groups of 128 columns.
    DIGIT_SUMS  digit_sums  int32 [batch, chunks, 4, 8]: of each digit, in each step of the chunk.
    VALUES      gathered    float32 [columns padded, batch]: the values, for single columns.

    Not by chunk, which is slower, for every program looks at the whole vector: x_scale is float32 [batch],
    digit_sums int32 [batch, chunks, 4], squares stay empty, and nothing is left out of the values.
    """

    used: int
    columns: int
    digits: Tensor
    digit_sums: Tensor
    group_sums: Tensor
    gathered: Tensor
    x_scale: Tensor
    squares: Tensor
    by_chunk: bool = True
    extras: Extras = Extras.NOTHING
    eps: float | None = None

    @property
    def batch(self) -> int:
        """Vectors kept."""
        return self.digits.shape[1]

    @property
    def chunks(self) -> int:
        """Chunks of 1024 columns."""
        return self.digits.shape[0] * STEP_COLUMNS // CHUNK

    def require(self, columns: int, extras: Extras) -> None:
        """Raise ValueError unless this is by chunk, of so many columns, and has these extras."""
        if self.columns != columns:
            raise ValueError(f"x has {self.columns} columns, the weights have {columns}")
        if not self.by_chunk or extras not in self.extras:
            raise ValueError(f"the product takes activations that were prepared by chunk, with {extras!r}")


def new_prepared(used: int, columns: int, device: torch.device, by_chunk: bool = True) -> Prepared:
    """Buffers for `used` vectors, contents undefined; give them to `prepare` again and again."""
    if not 1 <= used <= MOST_VECTORS:
        raise ValueError(f"a product takes 1 to {MOST_VECTORS} vectors, not {used}")
    batch = 1 << (used - 1).bit_length()
    steps = -(-columns // STEP_COLUMNS) + _ZERO_STEPS
    chunks = -(-steps * STEP_COLUMNS // CHUNK)
    steps = chunks * CHUNK // STEP_COLUMNS

    sums = (4, CHUNK // STEP_COLUMNS) if by_chunk else (4,)

    def floats(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=device)

    return Prepared(
        used=used,
        columns=columns,
        digits=torch.empty(steps, batch, LANES, 4, dtype=torch.int32, device=device),
        digit_sums=torch.empty(batch, chunks, *sums, dtype=torch.int32, device=device),
        group_sums=floats(batch, steps),
        gathered=floats(chunks * CHUNK, batch),
        x_scale=floats(batch, chunks) if by_chunk else floats(batch),
        squares=floats(batch, chunks if by_chunk else 0),
        by_chunk=by_chunk,
    )


def prepare(
    x: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 1e-6,
    up: Tensor | None = None,
    gelu: bool = False,
    factors: Tensor | None = None,
    order: Tensor | None = None,
    selection: Selection | None = None,
    out: Prepared | None = None,
    by_chunk: bool = True,
    extras: Extras = Extras.ALL,
    asm: bool | None = None,
) -> Prepared:
    """Digits of x [columns] or [1 to 8, columns], bf16 or float32.

    Prologues, in this order: RMSNorm with weight `norm` [columns] and `eps`, or silu(x) * `up` (shaped as x;
    with `gelu` gelu(x), its tanh form); times `factors` float32 [columns]; then column j is taken from column
    `order[j]` (int32 [columns]).
    `selection` is filled with the channels to correct, chosen among the columns before any order by the
    values after all factors; for one vector only. `out` are buffers of `new_prepared` to fill; without
    them `by_chunk` says which are made. `extras`: what the product will need (`Prepared`). Raises
    ValueError for shapes that do not fit.
    """
    rows = x.reshape(-1, x.shape[-1])
    if not rows.is_contiguous():
        raise ValueError("activations must be contiguous")
    if norm is not None and up is not None:
        raise ValueError("an activation is normed or gated, not both")
    for extra in (norm, factors, order):
        if extra is not None and extra.numel() != rows.shape[1]:
            raise ValueError(f"a factor of {extra.numel()} columns does not fit x with {rows.shape[1]}")
    if up is not None and up.shape != x.shape:
        raise ValueError(f"the gated half has shape {tuple(up.shape)}, not {tuple(x.shape)}")
    if selection is not None and (rows.shape[0] > 1 or selection.columns != rows.shape[1]):
        raise ValueError(f"a selection among {selection.columns} channels does not fit {tuple(rows.shape)}")
    buffers = out if out is not None else new_prepared(rows.shape[0], rows.shape[1], rows.device, by_chunk)
    left_out = eps if buffers.by_chunk and norm is not None else None
    prepared = replace(buffers, extras=extras, eps=left_out)
    if (prepared.used, prepared.columns) != tuple(rows.shape):
        raise ValueError(f"buffers for {prepared.used} x {prepared.columns} do not fit {tuple(rows.shape)}")
    other = norm if norm is not None else up
    _launch(rows, other, factors, order, selection, prepared, eps, _prologue(norm, up, gelu), asm)
    return prepared


def _prologue(norm: Tensor | None, up: Tensor | None, gelu: bool) -> Prologue:
    if norm is not None:
        return Prologue.RMS_NORM
    if up is None:
        return Prologue.NONE
    return Prologue.GELU_MUL if gelu else Prologue.SILU_MUL


def _warps(columns: int) -> int:
    """The fastest on an H200 for 4096 and 14336 columns."""
    if columns <= _BLOCK // 2:
        return 4
    return 8 if columns <= _BLOCK else 16


def _targets(selection: Selection | None, unused: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if selection is None:
        return unused, unused, unused, unused
    return selection.control, selection.channels, selection.values, selection.common


def _launch(
    rows: Tensor,
    other: Tensor | None,
    factors: Tensor | None,
    order: Tensor | None,
    selection: Selection | None,
    prepared: Prepared,
    eps: float,
    prologue: Prologue,
    asm: bool | None,
) -> None:
    selecting = -(-prepared.columns // CHUNK) if selection is not None else 0
    finishing = 1 if selecting and prepared.by_chunk else 0
    launch_chained(
        prepare_kernel,
        (selecting + prepared.chunks + finishing, prepared.batch),
        rows,
        other if other is not None else rows,
        factors if factors is not None else rows,
        order if order is not None else rows,
        prepared.digits,
        prepared.digit_sums,
        prepared.group_sums,
        prepared.gathered,
        prepared.x_scale,
        prepared.squares,
        *_targets(selection, rows),
        prepared.columns,
        prepared.chunks,
        selecting,
        eps,
        PROLOGUE=int(prologue),
        FACTORS=factors is not None,
        ORDERED=order is not None,
        SELECT=selection is not None,
        EXTRAS=int(prepared.extras),
        BY_CHUNK=prepared.by_chunk,
        BATCH=prepared.batch,
        USED=prepared.used,
        CHUNK=CHUNK,
        BLOCK=min(_BLOCK, 1 << (prepared.columns - 1).bit_length()),
        num_warps=_warps(prepared.columns),
    )
