"""Products of table weights with prepared activations, the correction's rows fetched on the way."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.dec.fetch import Fetch
from kernels.gpu.dec.launching import check_fetch, fetch_constants, fetch_pointers, fetch_sizes
from kernels.gpu.digits import Extras
from kernels.gpu.lowbit.table_kernel import table_kernel
from kernels.gpu.lowbit.tables import SUPERSTEP, DeviceTables
from kernels.gpu.planes import MANY_GROUPS
from kernels.gpu.prepare import Prepared
from kernels.gpu.product import STORE, Epilogue, ProductConfig, chunk_bound


def default_table_config(tables: DeviceTables, vectors: int = 1) -> ProductConfig:
    """The fastest launch measured on an H200: one warp a group where groups fill a GPU, else four.

    For one vector registers are limited (and granted) so that all loads of a superstep are under way and
    many warps fit; several vectors need as many as there are.
    """
    warps = 1 if tables.groups >= MANY_GROUPS else 4
    if vectors > 1:
        return ProductConfig(warps)
    return ProductConfig(warps, 64 if warps == 1 else 80)


def table_extras(tables: DeviceTables) -> Extras:
    """What a product with them needs of an input: only tables of 4 bits have a zero point."""
    return Extras.DIGIT_SUMS if tables.bits == 4 else Extras.NOTHING


def table_product(
    tables: DeviceTables,
    prepared: Prepared,
    *,
    fetch: Fetch | None = None,
    out: Tensor | None = None,
    config: ProductConfig | None = None,
    epilogue: Epilogue = STORE,
    dtype: torch.dtype = torch.float32,
    asm: bool | None = None,
) -> Tensor:
    """W @ x for each prepared vector: [used, rows] in `dtype` (float32 or bfloat16) or in `out`,
    with the `epilogue`.

    Sums are exact integers within a superstep and float32 beyond, the same bits in every run of one launch
    configuration. With `fetch` the first programs fill `fetch.partial`; `out` is then still to be corrected
    (`dec.correction.add_correction`). Raises ValueError when shapes do not match.
    """
    prepared.require(tables.columns, table_extras(tables))
    check_fetch(fetch, prepared.used, tables.columns, tables.rows)
    if out is None:
        out = torch.empty(prepared.used, tables.rows, dtype=dtype, device=tables.device)
    config = config if config is not None else default_table_config(tables, prepared.used)
    fetching = fetch_sizes(fetch, config.warps)
    launch_chained(
        table_kernel,
        (fetching[0] + tables.groups,),
        tables.words,
        tables.entries,
        tables.zero,
        tables.step,
        prepared.digits,
        prepared.digit_sums,
        prepared.x_scale,
        prepared.squares,
        out,
        epilogue.pointer(out),
        *fetch_pointers(fetch, out),
        tables.rows,
        tables.steps // SUPERSTEP,
        tables.steps % SUPERSTEP,
        prepared.chunks,
        prepared.columns,
        0.0 if prepared.eps is None else prepared.eps,
        *fetching,
        BITS=tables.bits,
        BATCH=prepared.batch,
        USED=prepared.used,
        WHOLE=tables.steps >= SUPERSTEP,
        TAIL=tables.steps % SUPERSTEP > 0,
        NORMED=prepared.eps is not None,
        CHUNKS=chunk_bound(prepared),
        asm=asm,
        **epilogue.constants,
        **fetch_constants(fetch),
        **config.options,
    )
    return out
