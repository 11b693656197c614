"""Products with a re-arranged (3, 5, 8) bitmap, decoded on the way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from kernels.gpu.bitmap_pack import BitmapPlanes
from kernels.gpu.bitmap_product_kernel import bitmap_product_kernel
from kernels.gpu.digits import Extras
from kernels.gpu.prepare import Prepared
from kernels.gpu.primitives import launch

# Groups from which on the grid fills a large GPU by itself, and steps that are worth 16 warps.
_LARGE_GRID = 2048
_LONG_ROW = 64


@dataclass(frozen=True, slots=True)
class BitmapLaunch:
    """Warps that share a group, rounds of patches each has in flight, registers a thread may use."""

    warps: int
    rounds: int = 1
    registers: int | None = None

    def __post_init__(self) -> None:
        if self.warps not in (1, 2, 4, 8, 16):
            raise ValueError(f"{self.warps} warps cannot share a group")


def bitmap_launch(planes: BitmapPlanes) -> BitmapLaunch:
    """The fastest of 1 to 16 warps on one H200: 28672 x 4096 took 35 us with 4, 4096 x 4096 10.5 with 8.

    A small grid lasts as long as its heaviest group, which more warps shorten: 4096 x 14336 28 us with 16.
    """
    if planes.groups >= _LARGE_GRID:
        return BitmapLaunch(4)
    return BitmapLaunch(16 if planes.steps >= _LONG_ROW else 8)


def bitmap_product(
    planes: BitmapPlanes,
    x: Prepared,
    *,
    config: BitmapLaunch | None = None,
    asm: bool | None = None,
) -> torch.Tensor:
    """The matrix times each vector of x: float32 [vectors, n_out].

    Levels 1 and 2 are summed exactly as integers of 30-bit x, level 3 in float32. ValueError if x has another
    number of columns or was prepared by chunk.
    """
    if x.columns != planes.n_in:
        raise ValueError(f"x has {x.columns} columns, the matrix {planes.n_in}")
    if x.by_chunk or Extras.DIGIT_SUMS | Extras.VALUES not in x.extras:
        raise ValueError("a bitmap takes activations that were not prepared by chunk, with sums and values")
    chosen = config or bitmap_launch(planes)
    y = torch.empty(x.used, planes.n_out, dtype=torch.float32, device=planes.words.device)
    launch(
        bitmap_product_kernel,
        (planes.groups,),
        y,
        planes.tensors,
        planes.scale,
        (x.digits, x.digit_sums, x.gathered.view(torch.int32), x.x_scale),
        planes.n_out,
        planes.n_in,
        int(planes.scale.numel() > 1),
        x.chunks,
        BATCH=x.batch,
        USED=x.used,
        CHUNKS=triton.next_power_of_2(x.chunks),
        WARPS=chosen.warps,
        ROUNDS=chosen.rounds,
        num_warps=chosen.warps,
        maxnreg=chosen.registers,
        asm=asm,
    )
    return y
