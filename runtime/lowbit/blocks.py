"""A decoder block's low-bit linears on disk: `base-rtn4/block-0000.safetensors`, written whole or not at all.

Per linear kind: `<kind>.codes` uint8 (packed, `kernels.dec.packing`), `.scale` and `.zero` bfloat16
[n_out, n_groups], `.residual` int32 [n_in, ceil(n_out / 8)] (eight nibbles a word), `.residual_scale` float32
[n_out].
Metadata: format, version, base, block, group_size, and `<kind>` = "n_out n_in".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from kernels.dec import group_count, pack_codes, pack_nibbles, packed_width, unpack_codes, unpack_nibbles
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.lowbit.files import BlockFile, serialised
from runtime.lowbit.weights import LowBitWeights, base_bits, quantise
from runtime.store.atomic import write_bytes

FORMAT = "decdec-lowbit"
VERSION = "1"
MAX_SIDE = 1 << 21


def block_path(folder: Path, base: str, block: int) -> Path:
    """Where a block of a base lies inside a model's folder."""
    return folder / f"base-{base}" / f"block-{block:04d}.safetensors"


def has_block(folder: Path, base: str, block: int) -> bool:
    """Whether the block was written; a file under its final name is whole."""
    return block_path(folder, base, block).is_file()


def write_block(folder: Path, base: str, block: int, weights: Mapping[LinearKind, torch.Tensor]) -> Path:
    """Quantise the fused float32 linears [n_out, n_in] of a block and write them; gives the file."""
    bits = base_bits(base)
    tensors: dict[str, torch.Tensor] = {}
    metadata = {"format": FORMAT, "version": VERSION, "base": base, "block": str(block)}
    for kind in LINEAR_KINDS:
        low = _quantise(weights[kind], bits, base, block, kind)
        tensors |= {f"{kind}.{name}": tensor for name, tensor in _packed(low).items()}
        metadata[kind] = f"{low.codes.shape[0]} {low.codes.shape[1]}"
        metadata["group_size"] = str(low.group_size)
    path = block_path(folder, base, block)
    write_bytes(path, serialised(tensors, metadata))
    return path


def read_block(folder: Path, base: str, block: int) -> dict[LinearKind, LowBitWeights]:
    """A block's linears, unpacked; DecdecError names file and tensor when anything does not fit."""
    bits = base_bits(base)
    with BlockFile(block_path(folder, base, block)) as file:
        wanted = {"format": FORMAT, "version": VERSION, "base": base, "block": str(block)}
        for key, value in wanted.items():
            file.expect(key, value)
        group = file.number("group_size", 8, 1 << 16)
        return {kind: _read_linear(file, kind, bits, group) for kind in LINEAR_KINDS}


def _quantise(weight: torch.Tensor, bits: int, base: str, block: int, kind: str) -> LowBitWeights:
    try:
        return quantise(weight, bits)
    except ValueError as error:
        raise DecdecError(f"Linear {kind} of block {block} cannot become {base}", str(error)) from error


def _packed(low: LowBitWeights) -> dict[str, torch.Tensor]:
    return {
        "codes": pack_codes(low.codes, low.bits),
        "scale": low.scale.bfloat16(),
        "zero": low.zero.bfloat16(),
        "residual": pack_nibbles(low.residual),
        "residual_scale": low.residual_scale,
    }


def _read_linear(file: BlockFile, kind: LinearKind, bits: int, group: int) -> LowBitWeights:
    n_out, n_in = file.pair(kind, MAX_SIDE)
    tables = (n_out, group_count(n_in, group))
    codes = file.tensor(f"{kind}.codes", torch.uint8, (n_out, packed_width(n_in, bits)))
    residual = file.tensor(f"{kind}.residual", torch.int32, (n_in, -(-n_out // 8)))
    return LowBitWeights(
        bits=bits,
        group_size=group,
        codes=unpack_codes(codes, n_in, bits),
        scale=file.tensor(f"{kind}.scale", torch.bfloat16, tables).float(),
        zero=file.tensor(f"{kind}.zero", torch.bfloat16, tables).float(),
        residual=unpack_nibbles(residual, n_out),
        residual_scale=file.tensor(f"{kind}.residual_scale", torch.float32, (n_out,)),
    )
