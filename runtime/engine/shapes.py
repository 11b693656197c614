"""Stored shapes against the configuration: kernels trust both, so they are compared before any is read."""

from __future__ import annotations

from pathlib import Path

from runtime import lowbit
from runtime.int8x import Int8xReader
from runtime.int8x.config import tensor_error
from runtime.layers.base import LINEAR_KINDS
from runtime.lowbit.blocks import linear_size
from runtime.model.spec import ModelSpec
from runtime.model.weights import EMBEDDING, HEAD, linear_shape, part_names


def check_int8x(reader: Int8xReader, spec: ModelSpec) -> None:
    """DecdecError naming the first matrix or bias of an INT8-X model that is missing or has a wrong shape."""
    for name in (EMBEDDING,) if spec.tied else (EMBEDDING, HEAD):
        _expect(name, reader.coded_entry(name).shape, (spec.vocab_size, spec.hidden))
    known = set(reader.names())
    for index in range(len(spec.layers)):
        for kind in LINEAR_KINDS:
            _check_linear(reader, known, part_names(spec, index, kind), linear_shape(spec, kind))


def check_base(folder: Path, base: str, spec: ModelSpec) -> None:
    """DecdecError naming the first file of a low-bit base with a linear of a wrong shape."""
    for index in range(len(spec.layers)):
        with lowbit.open_block(folder, base, index) as file:
            for kind in LINEAR_KINDS:
                found, wanted = linear_size(file, kind), linear_shape(spec, kind)
                if found != wanted:
                    raise file.wrong(f"{kind} has the shape {list(found)} instead of {list(wanted)}")


def _check_linear(
    reader: Int8xReader, known: set[str], names: tuple[str, ...], shape: tuple[int, int]
) -> None:
    """Parts of one fused linear [n_out, n_in]: rows add up, and a bias has a value for each."""
    n_out, n_in = shape
    rows = 0
    for name in names:
        entry = reader.coded_entry(name)
        _expect(name, entry.shape, (entry.shape[0], n_in))
        rows += entry.shape[0]
        bias = name.removesuffix("weight") + "bias"
        if bias in known:
            _expect(bias, reader.shape(bias), entry.shape[:1])
    if rows != n_out:
        raise tensor_error(names[0], f"with what belongs to it it has {rows} rows instead of {n_out}")


def _expect(name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if found != wanted:
        raise tensor_error(
            name, f"its shape {list(found)} is not {list(wanted)}, which the configuration asks for"
        )
