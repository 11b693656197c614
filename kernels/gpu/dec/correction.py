"""Corrections by kernels of their own: fetching apart from a product, and adding what was fetched."""

from __future__ import annotations

from torch import Tensor

from kernels.gpu.dec.correction_kernels import add_correction_kernel, fetch_kernel
from kernels.gpu.dec.fetch import Fetch
from kernels.gpu.primitives import launch

_OUTPUTS_AT_ONCE = 1024
_ADDING_WARPS = 4
# So many registers let every warp of a fetch be resident beside a product.
_FETCHING_REGISTERS = 64


def fetch_correction(fetch: Fetch, *, warps: int = 4, asm: bool | None = None) -> None:
    """Fill `fetch.partial` by a kernel of its own, `warps` segments a program.

    What a product does with `fetch=` in its first programs: for products that cannot, and for measuring.
    """
    residual, selection = fetch.residual, fetch.selection
    launch(
        fetch_kernel,
        (fetch.programs(warps),),
        residual.words,
        selection.channels,
        selection.values,
        selection.control,
        fetch.partial,
        residual.segment_groups(warps),
        residual.row_words,
        residual.columns,
        WARPS=warps,
        ROWS=fetch.config.rows,
        SPLITS=fetch.config.splits,
        AHEAD=fetch.config.ahead,
        asm=asm,
        num_warps=warps,
        maxnreg=_FETCHING_REGISTERS,
    )


def add_correction(out: Tensor, fetch: Fetch, *, asm: bool | None = None) -> Tensor:
    """Add the fetched correction to the first outputs of `out` [1, n_out or more], float32 or bf16, in place.

    Adds nothing while k_chunk in effect is 0. Returns `out`; raises ValueError for a batch of several.
    """
    residual = fetch.residual
    if out.numel() != out.shape[-1] or out.shape[-1] < residual.rows:
        raise ValueError(f"a correction of {residual.rows} outputs does not fit {tuple(out.shape)}")
    launch(
        add_correction_kernel,
        (-(-residual.rows // _OUTPUTS_AT_ONCE),),
        out,
        fetch.partial,
        residual.scale,
        fetch.selection.common,
        fetch.selection.control,
        residual.rows,
        fetch.partial.shape[1],
        SPLITS=fetch.config.splits,
        BLOCK=_OUTPUTS_AT_ONCE,
        asm=asm,
        num_warps=_ADDING_WARPS,
    )
    return out
