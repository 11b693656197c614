"""What an exported folder holds: every tensor's name, type and shape, known before anything is decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

import torch

from kernels.int8x import Quantised
from runtime.export.folding import Folds, divided
from runtime.export.packing import bfloat16_values, pack, packed_shape
from runtime.int8x import Int8xReader
from runtime.int8x.codecs import digest
from runtime.int8x.config import tensor_error
from runtime.int8x.entries import PLAIN_TYPES, PlainEntry
from runtime.model.spec import ModelSpec
from runtime.model.weights import HEAD, linear_names

WEIGHT = ".weight"


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a safetensors file."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size of its data."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Piece:
    """Tensors of one element size that are made together; `make` gives them in the order of `stored`."""

    stored: tuple[Stored, ...]
    make: Callable[[], tuple[torch.Tensor, ...]]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.stored[0].dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all its data."""
        return sum(stored.nbytes for stored in self.stored)


# The pieces of one tensor of the model; they belong into one file.
Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """Pieces by the name of the model's tensor, and which matrices are INT8 and which bfloat16."""

    pieces: dict[str, Pieces]
    int8: tuple[str, ...]
    bfloat16: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Size of all data."""
        return sum(piece.nbytes for pieces in self.pieces.values() for piece in pieces)


def contents_of(reader: Int8xReader, spec: ModelSpec, folds: Folds) -> Contents:
    """Every tensor of a model in the form in which it goes out; a head that is tied is left out."""
    names = [name for name in reader.names() if not (spec.tied and name == HEAD)]
    linears = set(linear_names(spec)) - folds.left
    coded = [name for name in reader.coded_names() if name in names]
    int8 = tuple(name for name in coded if name in linears)
    bfloat16 = tuple(name for name in coded if name not in linears)
    pieces: dict[str, Pieces] = {
        name: _plain(reader, spec, folds, name) for name in names if name not in coded
    }
    pieces |= {name: _int8(reader, folds, name) for name in int8}
    pieces |= {name: _bfloat16(reader, name) for name in bfloat16}
    return Contents({name: pieces[name] for name in names}, int8, bfloat16)


def module_of(name: str) -> str:
    """The module that a weight belongs to."""
    return name.removesuffix(WEIGHT)


def _int8(reader: Int8xReader, folds: Folds, name: str) -> Pieces:
    n_out, n_in = reader.coded_entry(name).shape
    module = module_of(name)
    shape = Stored(f"{module}.weight_shape", torch.int64, (2,))
    words = Stored(f"{module}.weight_packed", torch.int32, packed_shape(n_out, n_in))
    scale = Stored(f"{module}.weight_scale", torch.float32, (n_out, 1))

    def make() -> tuple[torch.Tensor, ...]:
        matrix = _proven(reader, name)
        return pack(matrix.q), _scales(matrix, folds, name)[:, None]

    return Piece((shape,), lambda: (torch.tensor([n_out, n_in]),)), Piece((words, scale), make)


def _bfloat16(reader: Int8xReader, name: str) -> Pieces:
    stored = Stored(name, torch.bfloat16, reader.shape(name))
    return (Piece((stored,), lambda: (bfloat16_values(_proven(reader, name)),)),)


def _plain(reader: Int8xReader, spec: ModelSpec, folds: Folds, name: str) -> Pieces:
    """Norms and biases in their own type, or float32 where something was folded into them."""
    rows = folds.rows.get(name.removesuffix(".bias") + WEIGHT) if name.endswith(".bias") else None
    if rows is not None:
        change = partial(divided, divisor=rows, offset=0.0)
    elif name in folds.norms:
        change = partial(divided, divisor=folds.norms[name], offset=spec.norm_offset)
    else:
        entry = reader.entry(name)
        assert isinstance(entry, PlainEntry)
        return (Piece((Stored(name, PLAIN_TYPES[entry.dtype], entry.shape),), lambda: (reader.plain(name),)),)
    stored = Stored(name, torch.float32, reader.shape(name))
    return (Piece((stored,), lambda: (_usable(name, change(reader.plain(name))),)),)


def _proven(reader: Int8xReader, name: str) -> Quantised:
    """A matrix whose integers have the hash that was taken before they were coded."""
    matrix = reader.quantised(name)
    if digest(matrix.q) != reader.coded_entry(name).sha256:
        raise tensor_error(name, "its weights are not those that were encoded")
    return matrix


def _scales(matrix: Quantised, folds: Folds, name: str) -> torch.Tensor:
    """What each row is multiplied by, float32 [n_out]."""
    scale = matrix.row_scale() / folds.gains.get(name, 1.0)
    return _usable(name, scale / folds.rows[name] if name in folds.rows else scale.clone())


def _usable(name: str, values: torch.Tensor) -> torch.Tensor:
    if not torch.isfinite(values).all():
        raise tensor_error(name, "its factors leave the range of float32", "export another quality of it")
    return values
