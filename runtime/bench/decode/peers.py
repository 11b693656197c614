"""4-bit products of other packages beside this project's, over the linears of a token.

    python -m pip install gemlite bitsandbytes

gemlite 0.6 (triton kernels, 0.2 MB, needs tqdm) and bitsandbytes 0.50 (43 MB, CUDA 11.8 to 13.2) need nothing
else that torch does not bring; torch itself has a product of 4-bit groups. Each package runs in a process of
its own with bf16 beside it, so that one that hangs, or takes the process with it, costs its own row alone:

    python -m runtime.bench.decode.peers torch MODEL
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.digits import Extras
from kernels.gpu.lowbit.group_product import group_product
from kernels.gpu.lowbit.groups import DeviceGroups
from kernels.gpu.prepare import prepare
from runtime.bench.decode.children import child_json
from runtime.bench.one_token import measure_formats
from runtime.bench.shapes import BY_NAME, ModelShape
from runtime.bench.table import Row
from runtime.bench.token_formats import BF16, EPS, Dense, Format, Input, plain_input
from runtime.tuner.random_weights import random_groups

MODULE = "runtime.bench.decode.peers"
GROUP, NF4_BLOCK = 128, 64
# Enough blocks to be read from memory; times are scaled to all.
TIMED_BLOCKS = 8
_INNER_TILES = 8
_HALF = 8
COLUMNS = ("model", "format", "ms", "weight_bytes", "ratio")


@dataclass(frozen=True, slots=True)
class Packed:
    """What a package keeps of a matrix: tensors, and whatever else its product is told."""

    tensors: tuple[Tensor, ...]
    other: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors)


@dataclass(frozen=True, slots=True)
class Groups:
    """This project's: groups of 128 with a scale and a zero."""

    name: str = "4-bit groups, this project"
    comparable: bool = False

    def pack(self, q: Tensor, scale: Tensor) -> DeviceGroups:
        """Random codes: what they are does not matter to time."""
        return random_groups(4, q.device, q.shape[0], q.shape[1])

    def multiply(self, matrix: DeviceGroups, given: Input) -> Tensor:
        """One kernel for the input, one for the product."""
        return group_product(
            matrix, prepare(given.x, norm=given.norm, eps=EPS, up=given.up, extras=Extras.GROUP_SUMS)
        )[0].to(BF16)


@dataclass(frozen=True, slots=True)
class TorchInt4:
    """torch's own product of 4-bit groups, behind torchao's weight-only quantisation."""

    name: str = "4-bit groups, torch"
    comparable: bool = False

    def pack(self, q: Tensor, scale: Tensor) -> Packed:
        """weight = (code - 8) * scale + zero, scale and zero bf16 a group of 128."""
        codes = (q & 15).to(torch.uint8)
        pairs = codes[:, ::2] << 4 | codes[:, 1::2]
        words = torch.ops.aten._convert_weight_to_int4pack(pairs.contiguous(), _INNER_TILES)
        tables = torch.zeros(q.shape[1] // GROUP, q.shape[0], 2, dtype=BF16, device=q.device)
        tables[..., 0] = scale
        return Packed((words, tables))

    def multiply(self, matrix: Packed, given: Input) -> Tensor:
        """torch's operations for the input, one kernel for the product."""
        words, tables = matrix.tensors
        return torch.ops.aten._weight_int4pack_mm(plain_input(given)[None], words, GROUP, tables)[0]


@dataclass(frozen=True, slots=True)
class Gemlite:
    """The package gemlite, which tunes its kernels to the device when they are first used."""

    name: str = "4-bit groups, gemlite"
    comparable: bool = False

    def pack(self, q: Tensor, scale: Tensor) -> Packed:
        """weight = (code - zero) * scale in groups of 128."""
        from gemlite.helper import A16W4_HQQ_INT

        groups = q.numel() // GROUP
        scales = scale.expand(groups)[:, None].to(BF16)
        zeros = torch.full_like(scales, _HALF)
        maker = A16W4_HQQ_INT(device=q.device, dtype=BF16)
        layer = maker.from_weights((q & 15).to(torch.uint8), scales, zeros)
        return Packed(tuple(layer.get_tensor_args()), tuple(layer.get_meta_args()))

    def multiply(self, matrix: Packed, given: Input) -> Tensor:
        """torch's operations for the input, the package's choice of kernels for the product."""
        import gemlite

        x = plain_input(given)[None]
        return gemlite.forward_functional(x, None, list(matrix.tensors), list(matrix.other))[0]


@dataclass(frozen=True, slots=True)
class Bitsandbytes:
    """The package bitsandbytes: 4-bit normal floats in blocks of 64."""

    name: str = "NF4, bitsandbytes"
    comparable: bool = False

    def pack(self, q: Tensor, scale: Tensor) -> Packed:
        """Quantised by the package."""
        from bitsandbytes.functional import quantize_4bit

        weight = (q.float() * scale).to(BF16)
        words, state = quantize_4bit(weight, blocksize=NF4_BLOCK, quant_type="nf4")
        return Packed((words, state.absmax), state)

    def multiply(self, matrix: Packed, given: Input) -> Tensor:
        """torch's operations for the input, the package's for one vector."""
        from bitsandbytes import matmul_4bit

        return matmul_4bit(plain_input(given)[None], matrix.tensors[0], matrix.other)[0]


PEERS: dict[str, tuple[Format, ...]] = {
    "torch": (Dense(), Groups(), TorchInt4()),
    "gemlite": (Dense(), Gemlite()),
    "bitsandbytes": (Dense(), Bitsandbytes()),
}


def peer_rows(shape: ModelShape, limit_s: float) -> Iterator[Row]:
    """Every package in a process of its own; what is missing or fails has a row that says why."""
    for name in PEERS:
        try:
            yield from child_json(MODULE, (name, shape.name), limit_s)
        except RuntimeError as error:
            yield {"model": shape.name, "format": name, "why not": str(error)}


def measure(name: str, shape: ModelShape, device: str) -> Iterator[Row]:
    """One package's rows, bf16 first, and a row with the reason for each format that fails."""
    failures: list[Row] = []

    def fail(what: str, error: Exception) -> None:
        first_line = (str(error).splitlines() or [""])[0]
        failures.append({"format": what, "why not": f"{type(error).__name__}: {first_line}"})

    for row in measure_formats(shape, device, PEERS[name], fail, min(TIMED_BLOCKS, shape.blocks)):
        yield {key: row[key] for key in COLUMNS}
    yield from failures


def main() -> None:
    """A child: package and model on the command line, rows as JSON in the last line of stdout."""
    name, model = sys.argv[1:]
    with torch.no_grad():
        print(json.dumps(list(measure(name, BY_NAME[model], "cuda"))))


if __name__ == "__main__":
    main()
