"""A decoder block's low-bit linears on disk: `base-awq4/block-0000.safetensors`, written whole or not at all.

Per linear kind: the base in its form (`runtime.lowbit.forms`), `<kind>.residual` int32
[n_in, ceil(n_out / 8)] (eight nibbles a word), `.residual_scale` float32 [n_out], `.profile` float32 [n_in],
and `.columns` float32 [n_in] where inputs are divided by them and the form does not hold them already.
Metadata: format, version, base, block, and per kind `<kind>` = "n_out n_in" and `<kind>.form`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

from kernels.dec import Residual, chunk_bounds, pack_nibbles, unpack_nibbles
from kernels.int8x import Quantised
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.lowbit.files import BlockFile, write_tensors
from runtime.lowbit.forms import StoredForm, describe, read_base
from runtime.lowbit.weights import BaseWeights, LowBitWeights, base_shape

FORMAT = "decdec-lowbit"
VERSION = "2"
MAX_SIDE = 1 << 21


def block_path(folder: Path, base: str, block: int) -> Path:
    """Where a block of a base lies inside a model's folder."""
    return folder / f"base-{base}" / f"block-{block:04d}.safetensors"


def has_block(folder: Path, base: str, block: int) -> bool:
    """Whether the block was written; a file under its final name is whole."""
    return block_path(folder, base, block).is_file()


def write_block(folder: Path, base: str, block: int, linears: Mapping[LinearKind, LowBitWeights]) -> Path:
    """Write the linears of a block; gives the file."""
    tensors: dict[str, torch.Tensor] = {}
    metadata = {"format": FORMAT, "version": VERSION, "base": base, "block": str(block)}
    for kind in LINEAR_KINDS:
        form, parts = describe(linears[kind].base)
        n_out, n_in = base_shape(linears[kind].base)
        metadata |= {kind: f"{n_out} {n_in}", f"{kind}.form": form}
        tensors |= {f"{kind}.{name}": part for name, part in {**parts, **_common(linears[kind])}.items()}
    path = block_path(folder, base, block)
    write_tensors(path, tensors, metadata)
    return path


def read_block(folder: Path, base: str, block: int) -> dict[LinearKind, LowBitWeights]:
    """A block's linears, unpacked; DecdecError names file and tensor when anything does not fit."""
    with open_block(folder, base, block) as file:
        return {kind: _read_linear(file, kind) for kind in LINEAR_KINDS}


@contextmanager
def open_block(folder: Path, base: str, block: int) -> Iterator[BlockFile]:
    """A block's file; DecdecError unless it is one, of this base and block."""
    with BlockFile(block_path(folder, base, block)) as file:
        wanted = {"format": FORMAT, "version": VERSION, "base": base, "block": str(block)}
        for key, value in wanted.items():
            file.expect(key, value)
        yield file


def linear_size(file: BlockFile, kind: LinearKind) -> tuple[int, int]:
    """(n_out, n_in) of a linear, by the file's metadata."""
    return file.pair(kind, MAX_SIDE)


def read_residual(file: BlockFile, kind: LinearKind) -> tuple[torch.Tensor, torch.Tensor]:
    """A residual as it is packed, int32 [n_in, ceil(n_out / 8)], and its scale float32 [n_out]."""
    n_out, n_in = linear_size(file, kind)
    words = file.tensor(f"{kind}.residual", torch.int32, (n_in, -(-n_out // 8)))
    return words, file.tensor(f"{kind}.residual_scale", torch.float32, (n_out,))


def has_columns(file: BlockFile, kind: LinearKind, form: StoredForm) -> bool:
    """Whether the linear's inputs are divided by factors."""
    if form.entry is not None:
        return "columns" in form.entry.factors
    return f"{kind}.columns" in file.names()


def read_columns(file: BlockFile, kind: LinearKind, base: BaseWeights) -> torch.Tensor | None:
    """What inputs are divided by, float32 [n_in]; None where they are taken as they are."""
    if isinstance(base, Quantised):
        return base.scales.column_scale()
    name = f"{kind}.columns"
    return file.tensor(name, torch.float32, (base_shape(base)[1],)) if name in file.names() else None


def _common(low: LowBitWeights) -> dict[str, torch.Tensor]:
    parts = {
        "residual": pack_nibbles(low.correction.codes),
        "residual_scale": low.correction.scale,
        "profile": low.profile.float().contiguous(),
    }
    if low.columns is not None and not isinstance(low.base, Quantised):
        parts["columns"] = low.columns.float().contiguous()
    return parts


def _read_linear(file: BlockFile, kind: LinearKind) -> LowBitWeights:
    n_out, n_in = linear_size(file, kind)
    base = read_base(file, kind, (n_out, n_in))
    words, scale = read_residual(file, kind)
    columns, profile = read_columns(file, kind, base), _profile(file, kind, n_in)
    try:
        return LowBitWeights(base, Residual(unpack_nibbles(words, n_out), scale), profile, columns)
    except ValueError as error:
        raise file.wrong(f"{kind}: {error}") from error


def _profile(file: BlockFile, kind: LinearKind, n_in: int) -> torch.Tensor:
    values = file.tensor(f"{kind}.profile", torch.float32, (n_in,))
    for start, stop in chunk_bounds(n_in):
        part = values[start:stop]
        if part[-1] < 0 or (part[1:] > part[:-1]).any():
            raise file.wrong(f"tensor {kind}.profile is not a descending list of magnitudes")
    return values
