"""Products of table weights with prepared activations."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.lowbit.table_kernel import table_kernel
from kernels.gpu.lowbit.tables import SUPERSTEP, DeviceTables
from kernels.gpu.planes import MANY_GROUPS
from kernels.gpu.prepare import Prepared
from kernels.gpu.primitives import launch
from kernels.gpu.product import ProductConfig

_FEWEST_CHUNKS = 8


def default_table_config(tables: DeviceTables) -> ProductConfig:
    """One warp a group where groups fill a GPU, else four; registers so that loads are not serialised."""
    return ProductConfig(1, 64) if tables.groups >= MANY_GROUPS else ProductConfig(4, 80)


def table_product(
    tables: DeviceTables,
    prepared: Prepared,
    *,
    dtype: torch.dtype = torch.float32,
    out: Tensor | None = None,
    config: ProductConfig | None = None,
    asm: bool | None = None,
) -> Tensor:
    """W @ x for each prepared vector: [used, rows] in `dtype` (float32 or bfloat16) or in `out`.

    Summed as integers, so that every launch configuration gives the same bits. Raises ValueError when the
    columns do not match.
    """
    if prepared.columns != tables.columns:
        raise ValueError(f"x has {prepared.columns} columns, the weights have {tables.columns}")
    if out is None:
        out = torch.empty(prepared.used, tables.rows, dtype=dtype, device=tables.device)
    config = config if config is not None else default_table_config(tables)
    options: dict[str, int] = {} if config.maxnreg is None else {"maxnreg": config.maxnreg}
    launch(
        table_kernel,
        (tables.groups,),
        tables.words,
        tables.entries,
        tables.zero,
        tables.step,
        prepared.digits,
        prepared.digit_sums,
        prepared.x_scale,
        out,
        tables.rows,
        tables.steps // SUPERSTEP,
        tables.steps % SUPERSTEP,
        prepared.chunks,
        BITS=tables.bits,
        BATCH=prepared.batch,
        USED=prepared.used,
        TAIL=tables.steps % SUPERSTEP > 0,
        CHUNKS=max(_FEWEST_CHUNKS, 1 << (prepared.chunks - 1).bit_length()),
        WARPS=config.warps,
        asm=asm,
        num_warps=config.warps,
        **options,
    )
    return out
