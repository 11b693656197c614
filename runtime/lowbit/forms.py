"""How each kind of base is stored: a description in the file's metadata, and its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import torch

from kernels.dec import GroupCodes, TableCodes, group_count, pack_codes, packed_width, unpack_codes
from kernels.int8x import Quantised
from runtime.errors import DecdecError
from runtime.int8x.choice import CodecChoice
from runtime.int8x.codecs import checksum, code_matrix
from runtime.int8x.config import parse_entry
from runtime.int8x.entries import CodedEntry
from runtime.int8x.reader import decode_parts
from runtime.layers.base import LinearKind
from runtime.lowbit.files import BlockFile
from runtime.lowbit.weights import BaseWeights

Tensors = dict[str, torch.Tensor]
MAX_GROUP = 1 << 16


def describe(base: BaseWeights) -> tuple[str, Tensors]:
    """A base's description and tensors: `groups BITS SIZE`, `table BITS`, or an INT8-X entry in JSON."""
    if isinstance(base, GroupCodes):
        tables = {"scale": base.scale.bfloat16(), "zero": base.zero.bfloat16()}
        return f"groups {base.bits} {base.group}", {"codes": pack_codes(base.codes, base.bits), **tables}
    if isinstance(base, TableCodes):
        packed = pack_codes(base.codes, base.bits)
        return f"table {base.bits}", {"codes": packed, "table": base.table.bfloat16()}
    entry, parts = code_matrix(base, CodecChoice(), "economical")
    return msgspec.json.encode(entry).decode(), parts


@dataclass(frozen=True, slots=True)
class StoredForm:
    """A base as its file describes it: codes in `group`s of columns, or with a table for each row, of `bits`;
    or an INT8-X entry, which takes `bits` a weight.
    """

    layout: Literal["groups", "table", "planes"]
    bits: float
    group: int = 0
    entry: CodedEntry | None = None


def stored_form(file: BlockFile, kind: LinearKind, shape: tuple[int, int]) -> StoredForm:
    """The form of a linear [n_out, n_in], from the metadata alone; DecdecError where it is unknown."""
    form = file.text(f"{kind}.form")
    words = form.split()
    if words[:1] == ["groups"] and len(words) == 3:
        bits, group = _numbers(file, kind, words[1:])
        return StoredForm("groups", bits, group)
    if words[:1] == ["table"] and len(words) == 2:
        return StoredForm("table", _numbers(file, kind, words[1:])[0])
    if form.startswith("{"):
        entry = _entry(file, kind, shape, form)
        return StoredForm("planes", entry.stored_bits / entry.weights, entry=entry)
    raise file.wrong(f"the form of {kind} is {form[:40]!r}")


def read_base(
    file: BlockFile, kind: LinearKind, shape: tuple[int, int], device: torch.device | str = "cpu"
) -> BaseWeights:
    """The base of a linear [n_out, n_in], its codes unpacked on `device` (but INT8-X on the CPU); DecdecError
    names the file and what does not fit.
    """
    form = stored_form(file, kind, shape)
    if form.entry is not None:
        return _coded(file, kind, form.entry)
    codes = _codes(file, kind, shape, int(form.bits)).to(device)
    unpacked = unpack_codes(codes, shape[1], int(form.bits))
    if form.layout == "table":
        table = file.tensor(f"{kind}.table", torch.bfloat16, (shape[0], 2 ** int(form.bits)))
        return TableCodes(int(form.bits), unpacked, table.to(device).float())
    tables = (shape[0], group_count(shape[1], form.group))
    scale, zero = (
        file.tensor(f"{kind}.{name}", torch.bfloat16, tables).to(device).float() for name in ("scale", "zero")
    )
    return GroupCodes(int(form.bits), form.group, unpacked, scale, zero)


def _numbers(file: BlockFile, kind: LinearKind, words: list[str]) -> list[int]:
    limits = [(3, 4), (8, MAX_GROUP)]
    return [file.whole(f"{kind}.form", word, *limit) for word, limit in zip(words, limits, strict=False)]


def _codes(file: BlockFile, kind: LinearKind, shape: tuple[int, int], bits: int) -> torch.Tensor:
    n_out, n_in = shape
    return file.tensor(f"{kind}.codes", torch.uint8, (n_out, packed_width(n_in, bits)))


def _entry(file: BlockFile, kind: LinearKind, shape: tuple[int, int], form: str) -> CodedEntry:
    try:
        entry = parse_entry(kind, msgspec.json.decode(form))
    except (msgspec.DecodeError, RecursionError, DecdecError) as error:
        raise file.wrong(f"the form of {kind} is no INT8-X entry") from error
    if not isinstance(entry, CodedEntry) or entry.shape != shape:
        raise file.wrong(f"the form of {kind} describes another tensor")
    return entry


def _coded(file: BlockFile, kind: LinearKind, entry: CodedEntry) -> Quantised:
    parts = {name: file.tensor(f"{kind}.{name}", p.dtype, p.shape) for name, p in entry.layout().items()}
    if checksum(parts.values()) != entry.crc32:
        raise file.wrong(f"the checksum of {kind} does not match, it is damaged")
    return decode_parts(kind, entry, parts)
