"""Products of group-quantised weights with prepared activations, the correction's rows fetched on the way."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.dec.fetch import Fetch
from kernels.gpu.dec.launching import check_fetch, fetch_constants, fetch_pointers, fetch_sizes
from kernels.gpu.digits import Extras
from kernels.gpu.lowbit.group_kernel import group_kernel
from kernels.gpu.lowbit.groups import UNROLL, DeviceGroups
from kernels.gpu.planes import MANY_GROUPS
from kernels.gpu.prepare import Prepared
from kernels.gpu.product import STORE, Epilogue, ProductConfig, chunk_bound

# Blocks of four warps with 80 registers that the 132 multiprocessors of an H200 hold at once.
_ONE_WAVE = 792


def default_config(weights: DeviceGroups) -> ProductConfig:
    """The fastest launch measured on an H200 for matrices of about this shape, with a fetch and without.

    Up to about 6 blocks a multiprocessor 80 registers let all of them run at once; beyond that 72 let one
    more. Where blocks fill the GPU many times over, two warps a block end at less different times.
    """
    if weights.blocks >= MANY_GROUPS:
        return ProductConfig(2, 72)
    return ProductConfig(4, 80 if weights.blocks < _ONE_WAVE else 72)


def group_product(
    weights: DeviceGroups,
    prepared: Prepared,
    *,
    fetch: Fetch | None = None,
    out: Tensor | None = None,
    config: ProductConfig | None = None,
    epilogue: Epilogue = STORE,
    dtype: torch.dtype = torch.float32,
    asm: bool | None = None,
) -> Tensor:
    """weights @ x for each prepared vector: [used, rows] in `dtype` (float32 or bfloat16) or in `out`,
    with the `epilogue`.

    With `fetch` the first programs fill `fetch.partial`; `out` is then still to be corrected
    (`dec.correction.add_correction`). The residual may have fewer outputs than the weights have rows.
    The sums are the same bits in every run of one configuration. Raises ValueError when shapes do not match.
    """
    prepared.require(weights.columns, Extras.GROUP_SUMS)
    check_fetch(fetch, prepared.used, weights.columns, weights.rows)
    if out is None:
        out = torch.empty(prepared.used, weights.rows, dtype=dtype, device=weights.device)
    config = config if config is not None else default_config(weights)
    fetching = fetch_sizes(fetch, config.warps)
    launch_chained(
        group_kernel,
        (fetching[0] + weights.blocks,),
        weights.words,
        weights.tables,
        prepared.digits,
        prepared.group_sums,
        prepared.x_scale,
        prepared.squares,
        out,
        epilogue.pointer(out),
        *fetch_pointers(fetch, out),
        weights.rows,
        weights.steps,
        prepared.group_sums.shape[1],
        prepared.chunks,
        prepared.columns,
        0.0 if prepared.eps is None else prepared.eps,
        *fetching,
        BITS=weights.bits,
        BATCH=prepared.batch,
        USED=prepared.used,
        WHOLE=weights.steps >= UNROLL,
        TAIL=weights.steps % UNROLL > 0,
        NORMED=prepared.eps is not None,
        CHUNKS=chunk_bound(prepared),
        asm=asm,
        **epilogue.constants,
        **fetch_constants(fetch),
        **config.options,
    )
    return out
