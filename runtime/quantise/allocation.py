"""Which decoder blocks get 4 bits and which 3: where a bit more saves most KL, for a rate or for a size.

The KL that a block's rounding costs is predicted as half the sum of Fisher information times squared error
over its weights (`runtime.sensitivity`), as in ZeroQ (Cai et al. 2020), but from weights alone: no run of a
model per block and width. All blocks of a decoder are of one size, so taking those that gain most is optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from kernels.dec import GROUP, dequantise, group_count, quantise_rtn
from kernels.dec.kmeans import quantise_table
from kernels.dec.table import dequantise_table
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.protocol.bases import BaseSpec, Method
from runtime.protocol.quality import MAX_BITS, MIN_BITS
from runtime.sensitivity import BlockSensitivity, Sensitivity

FEW, MANY = 3, 4
# bfloat16 entries of tables, and float32 factors of columns.
TABLE_BYTES, COLUMN_BYTES = 2, 4

# Predicted KL of a block by bits.
BlockKL = Mapping[int, float]
# The weights float32 [n_out, n_in] that a method makes of others at so many bits.
Make = Callable[[torch.Tensor, Sensitivity, int], torch.Tensor]


def predicted_kl(sensitivity: Sensitivity, lost: torch.Tensor) -> float:
    """Nats per token that an error `lost` float32 [n_out, n_in] of a linear's weights costs."""
    total = max(sensitivity.total, torch.finfo(torch.float32).tiny)
    return float((sensitivity.outputs @ lost.square() @ sensitivity.inputs) / (2 * total))


def groups(weight: torch.Tensor, sensitivity: Sensitivity, bits: int) -> torch.Tensor:
    """Uniform groups: round-to-nearest, which ranks blocks as better rounding does."""
    return dequantise(quantise_rtn(weight, bits))


def tables(weight: torch.Tensor, sensitivity: Sensitivity, bits: int) -> torch.Tensor:
    """A table per row."""
    return dequantise_table(quantise_table(weight, sensitivity.inputs, bits))


MAKES: dict[Method, Make] = {"rtn": groups, "awq": groups, "squeezellm": tables}


def predict(
    model: SourceModel, sensitivities: Sequence[BlockSensitivity], make: Make, ctx: JobContext
) -> list[BlockKL]:
    """Predicted KL of every block at 3 and at 4 bits; progress "allocate" in blocks."""
    found: list[BlockKL] = []
    count = len(model.spec.layers)
    for index in range(count):
        ctx.progress("allocate", index, count, "blocks")
        weights = {kind: torch.cat(parts) for kind, parts in model.parts(index).items()}
        found.append({bits: _block_kl(weights, sensitivities[index], make, bits) for bits in (FEW, MANY)})
    ctx.progress("allocate", count, count, "blocks")
    return found


def allocate(predicted: Sequence[BlockKL], bits: float) -> tuple[int, ...]:
    """Bits of every block for a mean of `bits`: 4 where that saves most KL, of equal ones the first."""
    four = blocks_of_four(bits, len(predicted))
    gains = [block[FEW] - block[MANY] for block in predicted]
    chosen = set(sorted(range(len(gains)), key=lambda index: -gains[index])[:four])
    return tuple(MANY if index in chosen else FEW for index in range(len(gains)))


def blocks_of_four(bits: float, count: int) -> int:
    """How many of `count` blocks have 4 bits."""
    return round((bits - FEW) * count)


def base_bytes(spec: ModelSpec, method: Method, bits: float) -> int:
    """Bytes of all decoder linears in a base of groups or tables, tables and column factors counted."""
    count = len(spec.layers)
    four = blocks_of_four(bits, count)
    shapes = [linear_shape(spec, kind) for kind in LINEAR_KINDS]
    few, many = (sum(_linear_bytes(method, shape, width) for shape in shapes) for width in (FEW, MANY))
    return four * many + (count - four) * few


def base_that_fits(spec: ModelSpec, method: Method, size: int, other_bytes: int) -> BaseSpec:
    """The base of a method with most bits whose linears fit `size` bytes beside `other_bytes`.

    Raises DecdecError where not even the smallest does.
    """
    room = size - other_bytes
    if method == "int8x":
        weights = len(spec.layers) * sum(a * b for a, b in (linear_shape(spec, k) for k in LINEAR_KINDS))
        bits = int(100 * 8 * room / weights) / 100
        if bits < MIN_BITS:
            raise _too_small(size, other_bytes + int(MIN_BITS * weights / 8))
        return BaseSpec(method, min(bits, MAX_BITS))
    smallest = base_bytes(spec, method, FEW)
    if room < smallest:
        raise _too_small(size, other_bytes + smallest)
    count = len(spec.layers)
    step = (base_bytes(spec, method, MANY) - smallest) // count
    return BaseSpec(method, _shortest(min(count, (room - smallest) // step), count))


def _shortest(four: int, count: int) -> float:
    """The shortest decimal number of bits that means `four` of `count` blocks."""
    exact = FEW + four / count
    rounded = (round(exact, digits) for digits in range(6))
    return next((bits for bits in rounded if blocks_of_four(bits, count) == four), exact)


def _linear_bytes(method: Method, shape: tuple[int, int], bits: int) -> int:
    n_out, n_in = shape
    entries = n_out * 2**bits if method == "squeezellm" else 2 * n_out * group_count(n_in, GROUP)
    columns = COLUMN_BYTES * n_in if method == "awq" else 0
    return -(-n_in // 8) * bits * n_out + TABLE_BYTES * entries + columns


def _block_kl(
    weights: Mapping[LinearKind, torch.Tensor], sensitivity: BlockSensitivity, make: Make, bits: int
) -> float:
    return sum(
        predicted_kl(one, weights[kind] - make(weights[kind], one, bits)) for kind, one in sensitivity.items()
    )


def _too_small(size: int, needed: int) -> DecdecError:
    return DecdecError(
        f"The model does not fit {size / 1e6:.0f} MB",
        f"at the fewest bits it takes {needed / 1e6:.0f} MB",
        f"ask for {needed / 1e6:.0f} MB or more",
    )
