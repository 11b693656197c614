"""Products of packed weights with prepared activations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.escapes import scratch_asm
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.prepare import Prepared
from kernels.gpu.primitives import launch
from kernels.gpu.product_kernel import product_kernel

# One kernel for all widths up to 7680 columns.
_FEWEST_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class ProductConfig:
    """How the product is started: warps that share a group's columns, and the registers a thread may have."""

    warps: int
    maxnreg: int | None = None

    def __post_init__(self) -> None:
        if self.warps not in (1, 2, 4, 8, 16):
            raise ValueError(f"a group is shared by 1, 2, 4, 8 or 16 warps, not {self.warps}")


def default_config(planes: DevicePlanes) -> ProductConfig:
    """The launch for a matrix of this shape."""
    return ProductConfig(4)


def product(
    planes: DevicePlanes,
    prepared: Prepared,
    *,
    dtype: torch.dtype = torch.float32,
    out: Tensor | None = None,
    config: ProductConfig | None = None,
    asm: bool | None = None,
) -> Tensor:
    """scale * q @ x for each prepared vector: [used, rows] in `dtype` (float32 or bfloat16) or in `out`.

    The dense part and the escapes are summed as integers, so that they are the same bits for every launch
    configuration; the few patches are added in float32. Raises ValueError when the columns do not match.
    """
    if prepared.columns != planes.columns:
        raise ValueError(f"x has {prepared.columns} columns, the weights have {planes.columns}")
    if out is None:
        out = torch.empty(prepared.used, planes.rows, dtype=dtype, device=planes.device)
    config = config if config is not None else default_config(planes)
    escapes = planes.offsets.numel() > 0
    options = {} if config.maxnreg is None else {"maxnreg": config.maxnreg}
    launch(
        product_kernel,
        (planes.groups,),
        planes.planes,
        planes.table,
        planes.offsets,
        planes.stream,
        planes.patch_columns,
        planes.patch_deltas,
        planes.permutation,
        planes.scale,
        prepared.digits,
        prepared.digit_sums,
        prepared.gathered,
        prepared.x_scale,
        out,
        planes.rows,
        planes.steps // planes.unroll,
        planes.steps % planes.unroll,
        prepared.chunks,
        BATCH=prepared.batch,
        USED=prepared.used,
        UNROLL=planes.unroll,
        TAIL=planes.steps % planes.unroll > 0,
        ESCAPES=escapes,
        ROW_SCALES=planes.scale.numel() > 1,
        CHUNKS=max(_FEWEST_CHUNKS, 1 << (prepared.chunks - 1).bit_length()),
        SPACE=scratch_asm(config.warps, planes.unroll) if escapes else "",
        WARPS=config.warps,
        asm=asm,
        num_warps=config.warps,
        **options,
    )
    return out
