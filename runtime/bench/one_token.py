"""One token through all fused linears of a model's shape, captured as one graph; weights are random.

Norms and gates belong to it, attention does not: its output is stood in for by the queries. Every block has
matrices of its own, so that each token reads all of them from memory, but blocks are copies of one another.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from runtime.bench.gpu_timing import graph_microseconds
from runtime.bench.mixture import paper_mixture
from runtime.bench.shapes import ModelShape
from runtime.bench.token_formats import BF16, EPS, Format, Input, copied, matrix_bytes
from runtime.engine.gpu.measures import kernels_started
from runtime.layers.base import LinearKind

Block = dict[LinearKind, Any]
_HOST_REPEATS = 3
_BF16_BYTES = 2


@dataclass(frozen=True, slots=True)
class TokenTime:
    """One token with one format. `ms` and `weight_bytes` are of all blocks, `timed_blocks` were measured.

    peak_bytes: device memory allocated beyond the weights while a token runs, None without a GPU. error:
    relative to float64, over one block, None where the format has other weights or leaves something out.
    """

    model: str
    format: str
    blocks: int
    timed_blocks: int
    ms: float
    weight_bytes: int
    bytes_of_bf16: float
    peak_bytes: int | None
    error: float | None


@dataclass(frozen=True, slots=True)
class Weights:
    """int8 matrices by kind, their scales float32 [1], and one norm for all."""

    q: dict[LinearKind, Tensor]
    scale: dict[LinearKind, Tensor]
    norm: Tensor
    x: Tensor


def draw_weights(shape: ModelShape, device: torch.device | str) -> Weights:
    """One block's weights at the paper's shares, and a token's input."""
    mixture = paper_mixture()
    sizes = enumerate(shape.linears.items())
    q = {kind: mixture.draw(*size, device=device, seed=i) for i, (kind, size) in sizes}
    scale = {kind: _unit_scale(matrix) for kind, matrix in q.items()}
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(shape.hidden, generator=generator, device=device).to(BF16)
    return Weights(q, scale, torch.ones(shape.hidden, device=device, dtype=BF16), x)


def pack_block(weights: Weights, form: Format) -> Block:
    """One block's matrices as a format keeps them."""
    return {kind: form.pack(q, weights.scale[kind]) for kind, q in weights.q.items()}


def run_token(shape: ModelShape, blocks: Sequence[Block], form: Format, norm: Tensor, x: Tensor) -> Tensor:
    """x bf16 [hidden] through every block; the last product [hidden]."""
    attention, middle = shape.linears["o"][1], shape.intermediate
    for block in blocks:
        qkv = form.multiply(block["qkv"], Input(x, norm=norm))
        h = form.multiply(block["o"], Input(qkv[:attention]))
        gate_up = form.multiply(block["gate_up"], Input(h, norm=norm))
        x = form.multiply(block["down"], Input(gate_up[:middle], up=gate_up[middle:]))
    return x


def run_exactly(shape: ModelShape, weights: Weights) -> Tensor:
    """One block in float64."""
    attention, middle = shape.linears["o"][1], shape.intermediate
    w = {kind: q.double() * weights.scale[kind].double() for kind, q in weights.q.items()}
    norm = weights.norm.double()
    h = w["o"] @ (w["qkv"] @ _rms_norm(weights.x.double(), norm))[:attention]
    gate_up = w["gate_up"] @ _rms_norm(h, norm)
    return w["down"] @ (torch.nn.functional.silu(gate_up[:middle]) * gate_up[middle:])


def measure_format(
    shape: ModelShape, form: Format, weights: Weights, timed_blocks: int | None = None
) -> TokenTime:
    """Time a token over `timed_blocks` blocks (all unless told) and scale to the whole model."""
    count = timed_blocks or shape.blocks
    first = pack_block(weights, form)
    weight_bytes = sum(matrix_bytes(matrix) for matrix in first.values())
    dense = _BF16_BYTES * sum(prod(size) for size in shape.linears.values())
    blocks = [first, *(copied(first) for _ in range(count - 1))]

    def token() -> Tensor:
        return run_token(shape, blocks, form, weights.norm, weights.x)

    peak = _peak_bytes(token)
    return TokenTime(
        model=shape.name,
        format=form.name,
        blocks=shape.blocks,
        timed_blocks=count,
        ms=_milliseconds(token, weights.x) * shape.blocks / count,
        weight_bytes=weight_bytes * shape.blocks,
        bytes_of_bf16=weight_bytes / dense,
        peak_bytes=peak,
        error=_error(shape, first, form, weights) if form.comparable else None,
    )


def measure_formats(
    shape: ModelShape,
    device: torch.device | str,
    formats: Sequence[Format],
    fail: Callable[[str, Exception], None],
    timed_blocks: int | None = None,
) -> Iterator[dict[str, Any]]:
    """A row for every format; `ratio`: how many times faster than the first one that worked.

    `fail` hears of a format that raises, by its name, and the others go on.
    """
    weights, baseline = draw_weights(shape, device), None
    for form in formats:
        try:
            found = measure_format(shape, form, weights, timed_blocks)
        except Exception as error:
            fail(f"{shape.name}, {form.name}", error)
            continue
        finally:
            torch.cuda.empty_cache()
        baseline = baseline or found.ms
        yield {**asdict(found), "ratio": baseline / found.ms}


def count_kernels(shape: ModelShape, form: Format, weights: Weights) -> int:
    """Kernels a token starts on the GPU, all blocks; see `kernels_started`."""
    block = pack_block(weights, form)
    run_token(shape, [block], form, weights.norm, weights.x)
    return shape.blocks * kernels_started(lambda: run_token(shape, [block], form, weights.norm, weights.x))


def _error(shape: ModelShape, block: Block, form: Format, weights: Weights) -> float:
    exact = run_exactly(shape, weights)
    found = run_token(shape, [block], form, weights.norm, weights.x).double()
    return float((found - exact).norm() / exact.norm())


def _milliseconds(token: Callable[[], object], x: Tensor) -> float:
    if x.device.type == "cuda":
        return graph_microseconds([token]) / 1e3
    return 1e3 * statistics.median(_host_seconds(token) for _ in range(_HOST_REPEATS))


def _host_seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _peak_bytes(token: Callable[[], object]) -> int | None:
    if not torch.cuda.is_available():
        return None
    token()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    token()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _unit_scale(q: Tensor) -> Tensor:
    """What keeps a product's output about as large as its input."""
    return (1 / (q.float().std() * q.shape[1] ** 0.5)).reshape(1)


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean() + EPS).sqrt() * weight
