"""Products of single matrices on a GPU, random and real ones, in every format beside cuBLAS in bf16."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kernels.gpu import decode as planes_decode
from kernels.gpu.bitmap_product import bitmap_product
from kernels.gpu.prepare import new_prepared, prepare
from kernels.gpu.product import EXTRAS
from kernels.int8x import absmax_scales, entropy_bits, histogram, quantise
from runtime.bench.block_file import block_linears
from runtime.bench.gpu_timing import copies_needed, graph_microseconds
from runtime.bench.mixture import paper_mixture
from runtime.bench.token_formats import (
    BF16,
    FAST,
    PLAIN_PLANES,
    SMALLEST,
    Bitmap,
    Planes,
    PlanesMatrix,
    copied,
    planes_microseconds,
)

Row = dict[str, Any]
LARGE = (28672, 4096)
SHAPES = (
    LARGE,
    (2560, 1536),
    (1536, 2048),
    (9216, 1536),
    (1536, 4608),
    (6144, 4096),
    (4096, 4096),
    (4096, 14336),
)
FASTER = Planes("INT8-X, adaptive planes, cost 24", escape_cost=24.0)
COSTS = (SMALLEST, FAST, FASTER, PLAIN_PLANES)
# Standard deviations, in steps, of Gaussian weights that files hold at about 3.3 and 4.2 bits.
LOW_RATES = (2.0, 3.5)


def random_rows(
    shape: tuple[int, int], formats: Sequence[Planes] = COSTS, device: str = "cuda"
) -> Iterator[Row]:
    """A matrix at the paper's shares."""
    q = paper_mixture().draw(*shape, device=device)
    yield from product_rows(f"random {shape[0]}x{shape[1]}", q, torch.ones(1, device=device), formats)


def low_rate_rows(shape: tuple[int, int] = LARGE, device: str = "cuda") -> Iterator[Row]:
    """Gaussian matrices as coarse as activation-aware steps make them."""
    for sigma in LOW_RATES:
        generator = torch.Generator(device).manual_seed(0)
        values = torch.randn(shape, generator=generator, device=device) * sigma
        q = values.round_().clamp_(-127, 127).to(torch.int8)
        yield from product_rows(f"Gaussian, sigma {sigma:g}", q, torch.ones(1, device=device), COSTS[:3])


def product_rows(name: str, q: Tensor, scale: Tensor, formats: Sequence[Planes] = COSTS) -> Iterator[Row]:
    """bf16 first, then each format: microseconds, ratio, bits, error against float64, extra memory."""
    dense = (q.float() * scale).to(BF16)
    x = torch.randn(q.shape[1], device=q.device)
    copies = [dense.clone() for _ in range(copies_needed(dense.nbytes))]
    calls = [partial(functional.linear, x.to(BF16), copy) for copy in copies]
    # A GPU that was idle reads a tenth too slow at first, which would flatter every ratio.
    bf16_us = min(graph_microseconds(calls) for _ in range(2))
    del calls, copies, dense
    base = {"matrix": name, "weights": q.numel(), "entropy": entropy_bits(histogram(q.cpu()))}
    yield {**base, "format": "bf16", "bits": 16.0, "us": bf16_us, "ratio": 1.0}
    for form in formats:
        matrix = form.pack(q, scale)
        yield {**base, "format": form.name, **_planes_figures(matrix, q, scale, x, bf16_us)}
    yield {**base, "format": Bitmap().name, **_bitmap_figures(q, scale, x, bf16_us)}


def real_rows(path: Path, device: str = "cuda") -> Iterator[Row]:
    """The fused linears of a checkpoint's middle block, or of a block file, with one scale a matrix."""
    for name, weight in block_linears(path):
        scales = absmax_scales(weight, "tensor")
        q = quantise(weight, scales).to(device)
        label = f"{name} {q.shape[0]}x{q.shape[1]}"
        yield from product_rows(label, q, scales.scale.to(device), (SMALLEST, FAST))


def decode_rows(shape: tuple[int, int] = LARGE, device: str = "cuda") -> Iterator[Row]:
    """Adaptive planes decoded to bf16: time, exactness, and bytes moved over a copy's in the same time."""
    q = paper_mixture().draw(*shape, device=device)
    out = torch.empty(shape, dtype=BF16, device=device)
    wide = torch.empty(shape, dtype=BF16, device=device)
    copy_us = graph_microseconds([partial(out.copy_, wide)] * 4)
    copied_bytes = 2 * out.nbytes / copy_us
    for form in (SMALLEST, FAST):
        matrix = form.pack(q, torch.ones(1, device=device))
        us = graph_microseconds([partial(planes_decode.decode_bf16, matrix.planes, out=out)] * 4)
        share = (matrix.planes.nbytes + out.nbytes) / us / copied_bytes
        exact = bool((out == q.to(BF16)).all())
        yield {
            "format": form.name,
            "us": us,
            "of copy": share,
            "exact": exact,
            "copy GB/s": copied_bytes / 1e3,
        }


def _planes_figures(matrix: PlanesMatrix, q: Tensor, scale: Tensor, x: Tensor, bf16_us: float) -> Row:
    us = planes_microseconds(matrix)
    y = SMALLEST.multiply_prepared(matrix, prepare(x))
    return {
        "bits": matrix.planes.bits_per_weight,
        "us": us,
        "ratio": bf16_us / us,
        "error": relative_error(y, q, scale, x),
        "extra bytes": extra_bytes(lambda: SMALLEST.multiply_prepared(matrix, prepare(x))),
        "unroll": matrix.planes.unroll,
        "launch": str(matrix.config),
    }


def _bitmap_figures(q: Tensor, scale: Tensor, x: Tensor, bf16_us: float) -> Row:
    planes, prepared = Bitmap().pack(q, scale), prepare(x, by_chunk=False)
    copies = [copied(planes) for _ in range(copies_needed(planes.nbytes))]
    us = graph_microseconds([partial(bitmap_product, copy, prepared) for copy in copies])
    return {
        "bits": 8 * planes.nbytes / q.numel(),
        "us": us,
        "ratio": bf16_us / us,
        "error": relative_error(bitmap_product(planes, prepared)[0], q, scale, x),
        "extra bytes": extra_bytes(lambda: bitmap_product(planes, prepare(x, by_chunk=False))),
    }


def relative_error(y: Tensor, q: Tensor, scale: Tensor, x: Tensor) -> float:
    """||y - W x|| / ||W x|| in float64."""
    exact = torch.cat([part.double() @ x.double() for part in q.split(4096)]) * scale.double()
    return float((y.double() - exact).norm() / exact.norm())


def extra_bytes(call: Callable[[], object]) -> int | None:
    """Device memory allocated while a call runs, beyond what was there; None without a GPU."""
    if not torch.cuda.is_available():
        return None
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def measure_prepare(columns: int, prologue: str) -> Row:
    """Time of `prepare` for one vector; `prologue` is "none", "norm" or "gate"."""
    x = torch.randn(columns, device="cuda", dtype=torch.bfloat16)
    other = torch.randn(columns, device="cuda", dtype=torch.bfloat16)
    options: dict[str, Any] = {"none": {}, "norm": {"norm": other}, "gate": {"up": other}}[prologue]
    out = new_prepared(1, columns, x.device)
    time = graph_microseconds([lambda: prepare(x, out=out, extras=EXTRAS, **options)] * 16)
    return {"columns": columns, "prologue": prologue, "microseconds": time}
