"""Measuring products with packed INT8-X weights on the GPU, beside cuBLAS in bf16."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.decode import decode_bf16
from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.prepare import new_prepared, prepare
from kernels.gpu.product import ProductConfig, default_config, product
from runtime.bench.gpu_timing import copies_needed, graph_microseconds

Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Weights:
    """Random int8 weights: rows of Gaussians of `sigma`, each row's own times a log-normal of `spread`."""

    name: str
    sigma: float
    spread: float = 0.0

    def draw(self, shape: Shape, device: str) -> Tensor:
        """The same int8 matrix every time."""
        generator = torch.Generator(device).manual_seed(shape[0] + shape[1])
        rows = torch.randn(shape[0], 1, generator=generator, device=device)
        values = torch.randn(shape, generator=generator, device=device)
        values *= self.sigma * torch.exp(self.spread * rows)
        return values.round_().clamp_(-127, 127).to(torch.int8)


# Entropy 4.6 bit: as a language model's weights with one scale a tensor.
MIXED = Weights("mixed rows", 4.9, 0.55)
COARSE = Weights("Gaussian, sigma 2", 2.0)
MEDIUM = Weights("Gaussian, sigma 3.5", 3.5)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One product: size, time, and time of cuBLAS in bf16 for the same shape and batch."""

    weights: str
    rows: int
    columns: int
    batch: int
    escape_cost: float
    unroll: int
    warps: int
    maxnreg: int | None
    bits_per_weight: float
    microseconds: float
    bf16_microseconds: float
    ratio: float
    relative_error: float


def bf16_microseconds(shape: Shape, batch: int = 1) -> float:
    """cuBLAS's product of a bf16 matrix with `batch` vectors."""
    count = copies_needed(2 * shape[0] * shape[1])
    matrices = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
    x = torch.randn(batch, shape[1], device="cuda", dtype=torch.bfloat16)
    x = x[0] if batch == 1 else x
    return graph_microseconds([partial(torch.nn.functional.linear, x, matrix) for matrix in matrices])


def relative_error(planes: DevicePlanes, q: Tensor, x: Tensor, y: Tensor) -> float:
    """||y - W x|| / ||W x||, in float64."""
    exact = torch.cat([part.double() @ x.double().T for part in q.split(4096)]).T
    exact *= planes.scale.double()
    return float((y.double() - exact).norm() / exact.norm())


def measure_products(
    weights: Weights,
    shape: Shape,
    packings: Sequence[tuple[float, int]],
    configs: Sequence[ProductConfig | None],
    *,
    batch: int = 1,
    baseline: float | None = None,
) -> Iterator[Measurement]:
    """One measurement for each packing (escape_cost, unroll) and launch configuration (None: the default)."""
    q = weights.draw(shape, "cuda")
    scale = torch.rand(shape[0], device="cuda") + 0.5
    x = torch.randn(batch, shape[1], device="cuda")
    prepared = prepare(x)
    bf16 = baseline if baseline is not None else bf16_microseconds(shape, batch)
    for escape_cost, unroll in packings:
        planes = pack_planes(q, scale, escape_cost=escape_cost, unroll=unroll)
        copies = [planes, *(planes.clone() for _ in range(copies_needed(planes.nbytes) - 1))]
        out = torch.empty(batch, shape[0], device="cuda")
        for chosen in configs:
            config = chosen if chosen is not None else default_config(planes)
            out.fill_(torch.nan)
            product(planes, prepared, out=out, config=config)
            error = relative_error(planes, q, x, out)
            time = graph_microseconds([partial(product, c, prepared, out=out, config=config) for c in copies])
            yield Measurement(
                weights.name,
                *shape,
                batch,
                escape_cost,
                unroll,
                config.warps,
                config.maxnreg,
                planes.bits_per_weight,
                time,
                bf16,
                bf16 / time,
                error,
            )


def measure_prepare(columns: int, prologue: str) -> dict[str, Any]:
    """Time of `prepare` for one vector; `prologue` is "none", "norm" or "gate"."""
    x = torch.randn(columns, device="cuda", dtype=torch.bfloat16)
    other = torch.randn(columns, device="cuda", dtype=torch.bfloat16)
    options: dict[str, Any] = {"none": {}, "norm": {"norm": other}, "gate": {"up": other}}[prologue]
    out = new_prepared(1, columns, x.device)
    time = graph_microseconds([lambda: prepare(x, out=out, **options)] * 16)
    return {"columns": columns, "prologue": prologue, "microseconds": time}


def copy_bandwidth() -> float:
    """Bytes read and written per microsecond by a large device copy."""
    source = torch.empty(1 << 29, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * source.numel() / graph_microseconds([lambda: target.copy_(source)] * 4)


def measure_decode(weights: Weights, shape: Shape, escape_cost: float) -> dict[str, Any]:
    """Time of decoding to bf16, and the bytes it moves over those of a copy in the same time."""
    q = weights.draw(shape, "cuda")
    planes = pack_planes(q, torch.ones(1, device="cuda"), escape_cost=escape_cost)
    out = torch.empty(shape, dtype=torch.bfloat16, device="cuda")
    time = graph_microseconds([lambda: decode_bf16(planes, out=out)] * 4)
    exact = bool((out == q.bfloat16()).all())
    share = (planes.nbytes + 2 * q.numel()) / time / copy_bandwidth()
    return {"shape": list(shape), "microseconds": time, "of_copy_bandwidth": share, "exact": exact}


def markdown(measurements: Sequence[Measurement]) -> str:
    """A table, one line a measurement."""
    head = (
        "| weights | shape | batch | cost | unroll | warps | maxnreg | bit/w | us | bf16 us | ratio | error |"
    )
    lines = [head, "|" + "---|" * 12]
    for m in measurements:
        lines.append(
            f"| {m.weights} | {m.rows}x{m.columns} | {m.batch} | {m.escape_cost:g} | {m.unroll} | {m.warps}"
            f" | {m.maxnreg or '-'} | {m.bits_per_weight:.3f} | {m.microseconds:.2f}"
            f" | {m.bf16_microseconds:.2f} | {m.ratio:.2f} | {m.relative_error:.1e} |"
        )
    return "\n".join(lines)


def as_json(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """The measurements as plain values."""
    return [asdict(m) for m in measurements]
