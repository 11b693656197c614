"""Corrections by kernels of their own: fetching apart from a product, and adding what was fetched."""

from __future__ import annotations

from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.dec.correction_kernels import add_correction_kernel, fetch_kernel, gate_kernel
from kernels.gpu.dec.fetch import Fetch

_OUTPUTS_AT_ONCE = 512
_ADDING_WARPS = 4
# So many registers let every warp of a fetch be resident beside a product.
_FETCHING_REGISTERS = 64


def fetch_correction(fetch: Fetch, *, warps: int = 4, asm: bool | None = None) -> None:
    """Fill `fetch.partial` by a kernel of its own, `warps` segments a program.

    What a product does with `fetch=` in its first programs: for products that cannot, and for measuring.
    """
    residual, selection = fetch.residual, fetch.selection
    launch_chained(
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

    While k_chunk in effect is 0 there is none. Returns `out`; raises ValueError for a batch of several.
    """
    residual = fetch.residual
    _check_outputs(out, residual.rows)
    launch_chained(
        add_correction_kernel,
        (-(-residual.rows // _OUTPUTS_AT_ONCE),),
        out,
        *_corrections(fetch),
        residual.rows,
        fetch.partial.shape[1],
        SPLITS=fetch.config.splits,
        BLOCK=_OUTPUTS_AT_ONCE,
        asm=asm,
        num_warps=_ADDING_WARPS,
    )
    return out


def gate_corrected(
    out: Tensor, fetch: Fetch, gated: Tensor, *, gelu: bool = False, asm: bool | None = None
) -> Tensor:
    """silu(first half, or gelu) * second half of `out` [1, 2 n] and its correction, into `gated` [1, n].

    Takes the place of the gate in `prepare`, which would have to read the correction once for each of its
    programs. Raises ValueError when the shapes do not fit.
    """
    _check_outputs(out, fetch.residual.rows)
    middle = gated.numel()
    if out.shape[-1] != 2 * middle or fetch.residual.rows != 2 * middle:
        raise ValueError(f"{middle} gated values do not fit {out.shape[-1]} outputs")
    launch_chained(
        gate_kernel,
        (-(-middle // _OUTPUTS_AT_ONCE),),
        out,
        gated,
        *_corrections(fetch),
        middle,
        fetch.partial.shape[1],
        GELU=gelu,
        SPLITS=fetch.config.splits,
        BLOCK=_OUTPUTS_AT_ONCE,
        asm=asm,
        num_warps=_ADDING_WARPS,
    )
    return gated


def _corrections(fetch: Fetch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return fetch.partial, fetch.residual.scale, fetch.selection.common, fetch.selection.control


def _check_outputs(out: Tensor, rows: int) -> None:
    if out.numel() != out.shape[-1] or out.shape[-1] < rows:
        raise ValueError(f"a correction of {rows} outputs does not fit {tuple(out.shape)}")
