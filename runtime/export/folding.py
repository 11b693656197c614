"""Column factors, which compressed-tensors does not have, moved into what makes a matrix's input.

A matrix divides its input by `columns`. Queries, keys, values, gate and up read a norm: its factors are
divided instead. `down` reads silu(gate) * up: the rows of up are divided. The output projection reads values:
their rows are divided, unless query heads that share them have different factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from runtime.int8x import Int8xReader
from runtime.int8x.config import tensor_error
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape, part_names


@dataclass(frozen=True, slots=True)
class Folds:
    """What changes, by tensor name; float32, on top of what is stored.

    norms: what a norm's factors [hidden] are divided by. rows: what a matrix's rows [n_out] and its bias are
    divided by. gains: by what power of two a matrix's input grew, so that its scales are divided by it.
    left: matrices whose factors nothing can take.
    """

    norms: dict[str, torch.Tensor] = field(default_factory=dict)
    rows: dict[str, torch.Tensor] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)


def find_folds(reader: Int8xReader, spec: ModelSpec) -> Folds:
    """Where the column factors of every decoder linear go; DecdecError if linears of one input disagree."""
    folds = Folds()
    for block in range(len(spec.layers)):
        _check_shapes(reader, spec, block)
        for kind, norm in _norms(spec, block).items():
            _into_norm(folds, reader, spec, part_names(spec, block, kind), norm)
        _output_into_values(folds, reader, spec, block)
        _down_into_up(folds, reader, spec, block)
    return folds


def divided(stored: torch.Tensor, divisor: torch.Tensor, offset: float) -> torch.Tensor:
    """A norm's weight or a bias, float32, whose factors (weight + offset) are divided by `divisor`."""
    return (stored.float() + offset) / divisor - offset


def _check_shapes(reader: Int8xReader, spec: ModelSpec, block: int) -> None:
    for kind in LINEAR_KINDS:
        names, (n_out, n_in) = part_names(spec, block, kind), linear_shape(spec, kind)
        shapes = [reader.coded_entry(name).shape for name in names]
        if sum(rows for rows, _ in shapes) != n_out or any(columns != n_in for _, columns in shapes):
            raise tensor_error(names[0], f"it has the shape {list(shapes[0])}, which config.json contradicts")


def _norms(spec: ModelSpec, block: int) -> dict[LinearKind, str]:
    """The norm whose output each kind of linear reads."""
    second = "pre_feedforward_layernorm" if spec.post_norms else "post_attention_layernorm"
    prefix = f"model.layers.{block}."
    return {"qkv": f"{prefix}input_layernorm.weight", "gate_up": f"{prefix}{second}.weight"}


def _into_norm(folds: Folds, reader: Int8xReader, spec: ModelSpec, names: tuple[str, ...], norm: str) -> None:
    columns = _shared_columns(reader, names)
    if columns is None:
        return
    gain = _gain((reader.plain(norm).float() + spec.norm_offset) / columns) if spec.norm_offset else 1.0
    folds.norms[norm] = columns / gain
    folds.gains.update(dict.fromkeys(names, gain))


def _gain(factors: torch.Tensor) -> float:
    """The power of two that brings the smallest factor to 1 or more.

    A norm that stores factor - 1 would lose all digits of a factor near 0 when it is rounded to bfloat16.
    """
    sizes = factors.abs()[factors != 0]
    smallest = float(sizes.min()) if sizes.numel() else 1.0
    return 2.0 ** max(0, math.ceil(-math.log2(smallest)))


def _output_into_values(folds: Folds, reader: Int8xReader, spec: ModelSpec, block: int) -> None:
    names = part_names(spec, block, "o")
    columns = _shared_columns(reader, names)
    if columns is None:
        return
    heads = columns.view(spec.n_kv_heads, -1, spec.head_dim)
    if (heads != heads[:, :1]).any():
        folds.left.update(names)
        return
    _divide_rows(folds, reader, spec, (block, "qkv"), spec.q_size + spec.kv_size, heads[:, 0].reshape(-1))


def _down_into_up(folds: Folds, reader: Int8xReader, spec: ModelSpec, block: int) -> None:
    columns = _shared_columns(reader, part_names(spec, block, "down"))
    if columns is not None:
        _divide_rows(folds, reader, spec, (block, "gate_up"), spec.intermediate, columns)


def _divide_rows(
    folds: Folds,
    reader: Int8xReader,
    spec: ModelSpec,
    place: tuple[int, LinearKind],
    first: int,
    divisor: torch.Tensor,
) -> None:
    """Divide rows from `first` on of a fused linear, whose parts may be stored one by one."""
    block, kind = place
    fused = torch.ones(linear_shape(spec, kind)[0])
    fused[first : first + divisor.numel()] = divisor
    names = part_names(spec, block, kind)
    parts = fused.split([reader.shape(name)[0] for name in names])
    folds.rows.update({name: part for name, part in zip(names, parts, strict=True) if (part != 1).any()})


def _shared_columns(reader: Int8xReader, names: tuple[str, ...]) -> torch.Tensor | None:
    first = reader.scales(names[0]).column_scale()
    for name in names[1:]:
        columns = reader.scales(name).column_scale()
        if not (columns is first or (columns is not None and first is not None and columns.equal(first))):
            raise tensor_error(name, f"its column factors are not those of {names[0]}, of the same input")
    return first
