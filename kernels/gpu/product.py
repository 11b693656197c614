"""Products of packed weights with prepared activations, the correction's rows fetched on the way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.dec.fetch import Fetch
from kernels.gpu.dec.launching import check_fetch, fetch_constants, fetch_pointers, fetch_sizes
from kernels.gpu.digits import Extras
from kernels.gpu.planes import MANY_GROUPS, DevicePlanes
from kernels.gpu.prepare import Prepared
from kernels.gpu.product_kernel import product_kernel
from kernels.gpu.saving import scratch_asm

# What a product with planes needs of an input.
EXTRAS = Extras.DIGIT_SUMS | Extras.VALUES
# One kernel for all widths up to 7680 columns.
_FEWEST_CHUNKS = 8
_SOME_GROUPS = 700


@dataclass(frozen=True, slots=True)
class ProductConfig:
    """How a product is started: warps that share a group's columns, and the registers a thread may have.

    Without a limit the assembler takes so few in programs of several warps that loads wait for one another.
    """

    warps: int
    maxnreg: int | None = None

    def __post_init__(self) -> None:
        if self.warps not in (1, 2, 4, 8, 16):
            raise ValueError(f"a group is shared by 1, 2, 4, 8 or 16 warps, not {self.warps}")

    @property
    def options(self) -> dict[str, int]:
        """The kernel's WARPS, and triton's own options."""
        limit = {} if self.maxnreg is None else {"maxnreg": self.maxnreg}
        return {"WARPS": self.warps, "num_warps": self.warps, **limit}


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What a product does with its sums: `add` them to what `out` holds, `bias` float32 [rows] on top."""

    add: bool = False
    bias: Tensor | None = None

    def pointer(self, unused: Tensor) -> Tensor:
        """The bias, or `unused`."""
        return unused if self.bias is None else self.bias

    @property
    def constants(self) -> dict[str, bool]:
        """The constexpr arguments ADD and BIAS."""
        return {"ADD": self.add, "BIAS": self.bias is not None}


STORE = Epilogue()


def default_config(planes: DevicePlanes) -> ProductConfig:
    """The fastest launch measured on an H200 for matrices of about this shape.

    With enough groups two warps share one; below that, time is the length of a warp's part, and more warps
    share it: 4 at 9216 x 1536 and 6144 x 4096, 8 from 4096 rows down. Left alone, ptxas takes 48 registers
    for these and spills.
    """
    if planes.groups >= MANY_GROUPS:
        return ProductConfig(2)
    return (
        ProductConfig(4, 80) if planes.groups >= _SOME_GROUPS or planes.unroll == 4 else ProductConfig(8, 64)
    )


def product(
    planes: DevicePlanes,
    prepared: Prepared,
    *,
    fetch: Fetch | None = None,
    out: Tensor | None = None,
    config: ProductConfig | None = None,
    epilogue: Epilogue = STORE,
    dtype: torch.dtype = torch.float32,
    asm: bool | None = None,
) -> Tensor:
    """scale * q @ x for each prepared vector: [used, rows] in `dtype` (float32 or bfloat16) or in `out`,
    with the `epilogue`.

    Sums are exact integers within a superstep and float32 beyond, the same bits in every run of one launch
    configuration. With `fetch` the first programs fill
    `fetch.partial`; `out` is then still to be corrected (`dec.correction.add_correction`). Raises ValueError
    when shapes do not match.
    """
    prepared.require(planes.columns, EXTRAS)
    check_fetch(fetch, prepared.used, planes.columns, planes.rows)
    if out is None:
        out = torch.empty(prepared.used, planes.rows, dtype=dtype, device=planes.device)
    config = config if config is not None else default_config(planes)
    fetching = fetch_sizes(fetch, config.warps)
    launch_chained(
        product_kernel,
        (fetching[0] + planes.groups,),
        *_tensors(planes),
        prepared.digits,
        prepared.digit_sums,
        prepared.gathered,
        prepared.x_scale,
        prepared.squares,
        out,
        epilogue.pointer(out),
        *fetch_pointers(fetch, out),
        planes.rows,
        planes.steps // planes.unroll,
        planes.steps % planes.unroll,
        prepared.chunks,
        prepared.columns,
        0.0 if prepared.eps is None else prepared.eps,
        *fetching,
        BATCH=prepared.batch,
        USED=prepared.used,
        UNROLL=planes.unroll,
        WHOLE=planes.steps >= planes.unroll,
        TAIL=planes.steps % planes.unroll > 0,
        KINDS=planes.kinds,
        ROW_SCALES=planes.scale.numel() > 1,
        NORMED=prepared.eps is not None,
        CHUNKS=chunk_bound(prepared),
        SPACE=scratch_asm(config.warps, planes.unroll, planes.kinds),
        asm=asm,
        **epilogue.constants,
        **fetch_constants(fetch),
        **config.options,
    )
    return out


def chunk_bound(prepared: Prepared) -> int:
    """A power of two that the chunks of an input do not exceed: what kernels are compiled for."""
    return max(_FEWEST_CHUNKS, 1 << (prepared.chunks - 1).bit_length())


def _tensors(planes: DevicePlanes) -> tuple[Tensor, ...]:
    lists = (planes.patch_columns, planes.patch_deltas, planes.permutation, planes.scale)
    return (planes.planes, planes.table, planes.offsets, planes.stream, *lists)
