"""What a model consists of, as far as its place in a GPU's memory goes: by the headers of its files, or as it
will be once it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.dec.rtn import GROUP
from kernels.gpu.attention.scratch import new_attention_scratch
from kernels.gpu.lowbit.groups import fits_groups
from runtime import device, lowbit
from runtime.engine.gpu.footprint import FLOAT_BYTES, Layout, LinearForm, allocated
from runtime.errors import DecdecError
from runtime.int8x import Int8xReader
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.lowbit.blocks import has_columns, linear_size
from runtime.lowbit.files import BlockFile
from runtime.lowbit.forms import stored_form
from runtime.model.spec import ModelSpec
from runtime.model.weights import EMBEDDING, HEAD, linear_shape, part_names
from runtime.protocol.bases import BaseSpec
from runtime.protocol.commands import LOSSLESS
from runtime.quantise.allocation import FEW, MANY, blocks_of_four

Forms = Mapping[LinearKind, LinearForm]
# What INT8-X in the default quality takes a weight, and the head, whose steps are always per row.
_USUAL_BITS, _USUAL_HEAD_BITS = 5.15, 7.11


@dataclass(frozen=True, slots=True)
class Contents:
    """A model with one base: its linears block by block, the same in INT8-X, the head, and its biases."""

    spec: ModelSpec
    base: str
    blocks: tuple[Forms, ...]
    exact: tuple[Forms, ...]
    head: LinearForm
    bias_bytes: int = 0

    @property
    def corrected(self) -> bool:
        """Whether linears are corrected, and so have a residual."""
        return self.base != LOSSLESS


def expected_contents(spec: ModelSpec, base: str) -> Contents:
    """A model that is not prepared, in the default quality, or lacks this base."""
    count = len(spec.layers)
    exact = (_alike(LinearForm("planes", _USUAL_BITS, columns=True)),) * count
    blocks = exact if base == LOSSLESS else _expected_blocks(BaseSpec.parse(base), count)
    return Contents(spec, base, blocks, exact, LinearForm("planes", _USUAL_HEAD_BITS))


def _expected_blocks(base: BaseSpec, count: int) -> tuple[Forms, ...]:
    if base.method == "int8x":
        return (_alike(LinearForm("planes", base.bits, columns=True)),) * count
    layout: Layout = "table" if base.method == "squeezellm" else "groups"
    columns = base.method in ("awq", "packed")
    four = blocks_of_four(base.bits, count)
    bits = [MANY] * four + [FEW] * (count - four)
    return tuple(_alike(LinearForm(layout, each, columns)) for each in bits)


def _alike(form: LinearForm) -> Forms:
    return dict.fromkeys(LINEAR_KINDS, form)


def stored_contents(reader: Int8xReader, spec: ModelSpec, base: str) -> Contents:
    """A prepared model. Raises DecdecError where a GPU has no product for the base, or a file is damaged."""
    _require_heads(spec)
    exact = tuple(_exact_forms(reader, spec, index) for index in range(len(spec.layers)))
    blocks = exact
    if base != LOSSLESS:
        blocks = tuple(_base_forms(reader.folder, base, index) for index in range(len(spec.layers)))
    head = _planes(reader, (EMBEDDING if spec.tied else HEAD,))
    return Contents(spec, base, blocks, exact, head, _bias_bytes(reader, spec))


def _require_heads(spec: ModelSpec) -> None:
    group = spec.n_heads // spec.n_kv_heads
    try:
        new_attention_scratch(spec.n_kv_heads, group, spec.head_dim, "meta", splits=1)
    except ValueError as error:
        what, fix = "This model cannot be used on a GPU", f"set {device.VARIABLE}={device.CPU}"
        raise DecdecError(what, str(error), fix) from error


def _exact_forms(reader: Int8xReader, spec: ModelSpec, index: int) -> Forms:
    return {kind: _planes(reader, part_names(spec, index, kind)) for kind in LINEAR_KINDS}


def _planes(reader: Int8xReader, names: tuple[str, ...]) -> LinearForm:
    entries = [reader.coded_entry(name) for name in names]
    bits = sum(entry.stored_bits for entry in entries) / sum(entry.weights for entry in entries)
    return LinearForm("planes", bits, "columns" in entries[0].factors)


def _base_forms(folder: Path, base: str, index: int) -> Forms:
    with lowbit.open_block(folder, base, index) as file:
        return {kind: _base_form(file, base, kind) for kind in LINEAR_KINDS}


def _base_form(file: BlockFile, base: str, kind: LinearKind) -> LinearForm:
    shape = linear_size(file, kind)
    form = stored_form(file, kind, shape)
    if form.layout == "groups" and not fits_groups(shape[1], form.group):
        raise DecdecError(
            f"The base {base} cannot be used on a GPU",
            f"its groups have {form.group} columns, and the kernels are made for {GROUP}",
            f"take another base, such as awq4, or set {device.VARIABLE}={device.CPU}",
        )
    return LinearForm(form.layout, form.bits, has_columns(file, kind, form))


def _bias_bytes(reader: Int8xReader, spec: ModelSpec) -> int:
    """The same for every block."""
    known = set(reader.names())
    total = 0
    for kind in LINEAR_KINDS:
        biases = (name.removesuffix("weight") + "bias" for name in part_names(spec, 0, kind))
        if any(name in known for name in biases):
            total += allocated(FLOAT_BYTES * linear_shape(spec, kind)[0])
    return len(spec.layers) * total
