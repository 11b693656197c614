"""Products of bf16 weights with one vector: the norm before and the sum after fused in."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kernels.gpu.chaining import launch_chained
from kernels.gpu.dense.kernel import dense_gate_kernel, dense_kernel
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.prepare import Prologue
from kernels.gpu.product import STORE, Epilogue

_LONG, _SHORT = 1024, 512
# A part of a row that may be filled up with nothing.
_SPARE = 16


@dataclass(frozen=True, slots=True)
class DenseConfig:
    """Rows of a program, columns it takes at once, and its warps."""

    rows: int = 4
    block: int = 1024
    warps: int = 4


def default_dense_config(rows: int, columns: int) -> DenseConfig:
    """Blocks that leave little of the last one empty, with 8 weights of a row to a thread, 16 bytes."""
    block = _LONG if -columns % _LONG <= columns // _SPARE else _SHORT
    block = min(block, 1 << (columns - 1).bit_length())
    return DenseConfig(rows=4, block=block, warps=max(1, block // 256))


def dense_product(
    weights: DenseWeights,
    x: Tensor,
    out: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 1e-6,
    epilogue: Epilogue = STORE,
    config: DenseConfig | None = None,
) -> Tensor:
    """weights @ x into `out` [1, rows] (float32 or bf16): x float32 or bf16 [1, columns], first through an
    RMSNorm with weight `norm` float32 [columns] where there is one.
    """
    config = config or default_dense_config(weights.rows, weights.columns)
    _launch(dense_kernel, weights, weights.rows, x, out, norm, eps, epilogue.bias, config, ADD=epilogue.add)
    return out


def dense_gate(
    weights: DenseWeights,
    x: Tensor,
    out: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 1e-6,
    gelu: bool = False,
    bias: Tensor | None = None,
    config: DenseConfig | None = None,
) -> Tensor:
    """silu(first half) * second half of weights @ x (with `gelu` gelu) into `out` [1, rows / 2]."""
    half = weights.rows // 2
    config = config or default_dense_config(half, weights.columns)
    _launch(dense_gate_kernel, weights, half, x, out, norm, eps, bias, config, GELU=gelu)
    return out


def _launch(
    kernel: object,
    weights: DenseWeights,
    rows: int,
    x: Tensor,
    out: Tensor,
    norm: Tensor | None,
    eps: float,
    bias: Tensor | None,
    config: DenseConfig,
    **options: bool,
) -> None:
    if x.numel() != weights.columns or out.numel() != rows:
        raise ValueError(f"{x.numel()} inputs, {out.numel()} outputs do not fit {rows} x {weights.columns}")
    launch_chained(
        kernel,
        (-(-rows // config.rows),),
        weights.matrix,
        x,
        x if norm is None else norm,
        out,
        out if bias is None else bias,
        rows,
        weights.columns,
        eps,
        PROLOGUE=int(Prologue.NONE if norm is None else Prologue.RMS_NORM),
        BIAS=bias is not None,
        ROWS=config.rows,
        BLOCK=config.block,
        num_warps=config.warps,
        **options,
    )
