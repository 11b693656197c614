"""Ways to keep the fused linears of a model on a device, each with the product that one token needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from kernels.gpu import bitmap_decode
from kernels.gpu.bitmap_matrix import BitmapMatrix, load_bitmap, parts_of
from kernels.gpu.bitmap_pack import BitmapPlanes, pack_bitmap
from kernels.gpu.bitmap_product import bitmap_product
from kernels.gpu.fields import ALL_FORMS, GROUP_ROWS, Form
from kernels.gpu.packing import pack_planes
from kernels.gpu.planes import MANY_GROUPS, DevicePlanes
from kernels.gpu.prepare import Prepared, prepare
from kernels.gpu.product import EXTRAS, ProductConfig, product
from kernels.int8x import PAPER_LEVELS, encode
from runtime.bench import dfloat
from runtime.bench.gpu_timing import copies_needed, graph_microseconds

BF16 = torch.bfloat16
EPS = 1e-6
PLAIN_FORMS = (Form(8),)
# Steps of 128 columns in a superstep and how the product is started; None: what the kernels choose.
Launch = tuple[int | None, ProductConfig | None]
_LARGE_LAUNCHES: tuple[Launch, ...] = ((None, None), (4, ProductConfig(1)), (4, ProductConfig(4)))
_SMALL_LAUNCHES: tuple[Launch, ...] = (
    (None, None),
    (2, ProductConfig(4)),
    (1, ProductConfig(16)),
    (4, ProductConfig(4)),
)


@dataclass(frozen=True, slots=True)
class Input:
    """A vector [n_in] and what happens to it before the product: RMSNorm with a weight, or silu(x) * up."""

    x: Tensor
    norm: Tensor | None = None
    up: Tensor | None = None


class Format(Protocol):
    """How matrices are kept: int8 q times scale [1]. `multiply` gives bf16 or float32 [n_out]."""

    @property
    def name(self) -> str:
        """Short and stable."""
        ...

    @property
    def comparable(self) -> bool:
        """Whether a token's result is that of the given weights."""
        ...

    def pack(self, q: Tensor, scale: Tensor) -> Any:
        """A matrix as it is kept, on q's device."""
        ...

    def multiply(self, matrix: Any, given: Input) -> Tensor:
        """Its product with one vector."""
        ...


def plain_input(given: Input) -> Tensor:
    """The vector a bf16 product needs, by torch's operations."""
    if given.norm is not None:
        return functional.rms_norm(given.x.to(BF16), given.x.shape, given.norm, EPS)
    if given.up is not None:
        return functional.silu(given.x) * given.up
    return given.x.to(BF16)


@dataclass(frozen=True, slots=True)
class Dense:
    """bf16 and torch's linear; `prologues` False leaves norms and gates out, which only time can show."""

    name: str = "bf16"
    prologues: bool = True

    @property
    def comparable(self) -> bool:
        """Only with norms and gates."""
        return self.prologues

    def pack(self, q: Tensor, scale: Tensor) -> Tensor:
        """bf16 [n_out, n_in]."""
        return (q.float() * scale).to(BF16)

    def multiply(self, matrix: Tensor, given: Input) -> Tensor:
        """One cuBLAS call."""
        return functional.linear(plain_input(given) if self.prologues else given.x, matrix)


@dataclass(frozen=True, slots=True)
class PlanesMatrix:
    """Packed planes and the launch that was fastest for them."""

    planes: DevicePlanes
    config: ProductConfig | None


@dataclass(frozen=True, slots=True)
class Planes:
    """INT8-X in adaptive planes, multiplied while decoding; the fastest of `launches` is taken on a GPU."""

    name: str
    escape_cost: float = 0.0
    forms: tuple[Form, ...] = ALL_FORMS
    launches: tuple[Launch, ...] | None = None
    comparable: bool = True

    def launches_for(self, rows: int) -> tuple[Launch, ...]:
        """What is tried for a matrix of so many rows."""
        return self.launches or (_LARGE_LAUNCHES if rows >= GROUP_ROWS * MANY_GROUPS else _SMALL_LAUNCHES)

    def pack(self, q: Tensor, scale: Tensor) -> PlanesMatrix:
        """Packs once for each number of steps in a superstep."""
        found: dict[int | None, DevicePlanes] = {}
        launches = self.launches_for(q.shape[0])
        for unroll, _ in launches:
            if unroll not in found:
                options: dict[str, Any] = {"escape_cost": self.escape_cost, "forms": self.forms}
                found[unroll] = pack_planes(q, scale, unroll=unroll, **options)
        return fastest([PlanesMatrix(found[unroll], config) for unroll, config in launches])

    def multiply(self, matrix: PlanesMatrix, given: Input) -> Tensor:
        """One kernel for the input, one for the product."""
        prepared = prepare(given.x, norm=given.norm, eps=EPS, up=given.up, extras=EXTRAS)
        return product(matrix.planes, prepared, dtype=BF16, config=matrix.config)[0]

    def multiply_prepared(self, matrix: PlanesMatrix, prepared: Prepared) -> Tensor:
        """The product alone, float32."""
        return product(matrix.planes, prepared, config=matrix.config)[0]


def fastest(matrices: Sequence[PlanesMatrix]) -> PlanesMatrix:
    """By time on a GPU; the first where there is none."""
    if len(matrices) == 1 or matrices[0].planes.device.type != "cuda":
        return matrices[0]
    return min(matrices, key=planes_microseconds)


def planes_microseconds(matrix: PlanesMatrix) -> float:
    """Time of one product, its input prepared, over rotated copies."""
    planes = matrix.planes
    prepared = prepare(torch.randn(planes.columns, device=planes.device))
    copies = [planes.clone() for _ in range(copies_needed(planes.nbytes))]
    run = partial(product, prepared=prepared, dtype=BF16, config=matrix.config)
    return graph_microseconds([partial(run, copy) for copy in copies])


@dataclass(frozen=True, slots=True)
class Bitmap:
    """INT8-X (3,5,8) re-arranged for warps, multiplied while decoding."""

    name: str = "INT8-X (3,5,8)"
    comparable: bool = True

    def pack(self, q: Tensor, scale: Tensor) -> BitmapPlanes:
        """See `pack_bitmap`."""
        return pack_bitmap(q, scale)

    def multiply(self, matrix: BitmapPlanes, given: Input) -> Tensor:
        """One kernel for the input, one for the product."""
        return bitmap_product(
            matrix, prepare(given.x, norm=given.norm, eps=EPS, up=given.up, by_chunk=False)
        )[0]


@dataclass(frozen=True, slots=True)
class DecodedBitmap:
    """The paper's way: (3,5,8) streams decoded to bf16 by its fused kernel (v10), then torch's linear."""

    name: str = "(3,5,8) decoded, then bf16"
    comparable: bool = True

    def pack(self, q: Tensor, scale: Tensor) -> BitmapMatrix:
        """Encoded in host memory."""
        return load_bitmap(encode(q.cpu(), PAPER_LEVELS), (q.shape[0], q.shape[1]), scale, q.device)

    def multiply(self, matrix: BitmapMatrix, given: Input) -> Tensor:
        """Whole matrices in bf16 for a moment."""
        return functional.linear(plain_input(given), bitmap_decode.bitmap_decode_bf16(matrix))


@dataclass(frozen=True, slots=True)
class Dfloat:
    """Lossless bf16 by the package dfloat11: decoded to bf16 by its kernel, then torch's linear."""

    name: str = "DFloat11 (bf16)"
    comparable: bool = False

    def pack(self, q: Tensor, scale: Tensor) -> dfloat.DfloatMatrix:
        """Normal weights with the standard deviation of q * scale: rounded ones would compress too well."""
        generator = torch.Generator(q.device).manual_seed(q.shape[0])
        normal = torch.randn(q.shape, generator=generator, device=q.device)
        weight = (normal * q.float().std() * scale).to(BF16)
        matrix = dfloat.compress(weight)
        if not torch.equal(dfloat.decompress(matrix), weight):
            raise ValueError("dfloat11 did not give the same weights back")
        return matrix

    def multiply(self, matrix: dfloat.DfloatMatrix, given: Input) -> Tensor:
        """Whole matrices in bf16 for a moment."""
        return functional.linear(plain_input(given), dfloat.decompress(matrix))


def copied(value: Any) -> Any:
    """A matrix with memory of its own: tensors cloned, everything else as it is."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, tuple):
        return tuple(copied(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        return replace(value, **{name: copied(part) for name, part in parts.items()})
    return value


def matrix_bytes(matrix: Any) -> int:
    """Bytes on the device, tables and scales included."""
    if isinstance(matrix, Tensor):
        return matrix.nbytes
    if isinstance(matrix, PlanesMatrix):
        return matrix.planes.nbytes
    if isinstance(matrix, BitmapMatrix):
        return sum(part.nbytes for part in (*parts_of(matrix.streams), matrix.scale))
    return int(matrix.nbytes)


SMALLEST = Planes("INT8-X, adaptive planes")
FAST = Planes("INT8-X, adaptive planes, faster", escape_cost=8.0)
PLAIN_PLANES = Planes("plain INT8", forms=PLAIN_FORMS, launches=((None, None), (2, ProductConfig(8))))
FORMATS: tuple[Format, ...] = (
    Dense(),
    Dense("bf16, linears alone", prologues=False),
    SMALLEST,
    FAST,
    Bitmap(),
    PLAIN_PLANES,
    DecodedBitmap(),
)
