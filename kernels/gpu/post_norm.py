"""A sublayer's output, normed once more before it joins the residual stream (Gemma 3)."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.activation import inverse_rms
from kernels.gpu.chaining import follow, launch_chained

_WARPS = 8


@triton.jit
def add_normed_kernel(
    stream: tl.tensor,
    x: tl.tensor,
    norm: tl.tensor,
    columns: tl.tensor,
    eps: tl.tensor,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
    ASM: tl.constexpr,
) -> None:
    """stream += x / rms(x) * norm; one program."""
    follow(CHAINED)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + at, mask=inside, other=0.0)
    before = tl.load(stream + at, mask=inside, other=0.0)
    weight = tl.load(norm + at, mask=inside, other=0.0)
    common = inverse_rms(tl.sum(value * value, 0), columns, eps)
    tl.store(stream + at, before + value * common * weight, mask=inside)


def add_normed(stream: Tensor, x: Tensor, norm: Tensor, eps: float) -> Tensor:
    """Add x / rms(x) * norm to `stream`, in place; all float32, [1, columns] and [columns]."""
    if not stream.numel() == x.numel() == norm.numel():
        raise ValueError(f"{x.numel()} values normed by {norm.numel()} do not fit {stream.numel()}")
    columns = stream.numel()
    launch_chained(
        add_normed_kernel,
        (1,),
        stream,
        x,
        norm,
        columns,
        eps,
        BLOCK=1 << (columns - 1).bit_length(),
        num_warps=_WARPS,
    )
    return stream
