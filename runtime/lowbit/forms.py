"""How each kind of base is stored: a description in the file's metadata, and its tensors."""

from __future__ import annotations

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


def read_base(file: BlockFile, kind: LinearKind, shape: tuple[int, int]) -> BaseWeights:
    """The base of a linear [n_out, n_in]; DecdecError names the file and what does not fit."""
    form = file.text(f"{kind}.form")
    words = form.split()
    if words[:1] == ["groups"] and len(words) == 3:
        return _groups(file, kind, shape, *_numbers(file, kind, words[1:]))
    if words[:1] == ["table"] and len(words) == 2:
        return _table(file, kind, shape, *_numbers(file, kind, words[1:]))
    if form.startswith("{"):
        return _coded(file, kind, shape, form)
    raise file.wrong(f"the form of {kind} is {form[:40]!r}")


def _numbers(file: BlockFile, kind: LinearKind, words: list[str]) -> list[int]:
    limits = [(3, 4), (8, MAX_GROUP)]
    return [file.whole(f"{kind}.form", word, *limit) for word, limit in zip(words, limits, strict=False)]


def _codes(file: BlockFile, kind: LinearKind, shape: tuple[int, int], bits: int) -> torch.Tensor:
    n_out, n_in = shape
    packed = file.tensor(f"{kind}.codes", torch.uint8, (n_out, packed_width(n_in, bits)))
    return unpack_codes(packed, n_in, bits)


def _groups(file: BlockFile, kind: LinearKind, shape: tuple[int, int], bits: int, group: int) -> GroupCodes:
    tables = (shape[0], group_count(shape[1], group))
    scale = file.tensor(f"{kind}.scale", torch.bfloat16, tables).float()
    zero = file.tensor(f"{kind}.zero", torch.bfloat16, tables).float()
    return GroupCodes(bits, group, _codes(file, kind, shape, bits), scale, zero)


def _table(file: BlockFile, kind: LinearKind, shape: tuple[int, int], bits: int) -> TableCodes:
    table = file.tensor(f"{kind}.table", torch.bfloat16, (shape[0], 2**bits)).float()
    return TableCodes(bits, _codes(file, kind, shape, bits), table)


def _coded(file: BlockFile, kind: LinearKind, shape: tuple[int, int], form: str) -> Quantised:
    try:
        entry = parse_entry(kind, msgspec.json.decode(form))
    except (msgspec.DecodeError, DecdecError) as error:
        raise file.wrong(f"the form of {kind} is no INT8-X entry") from error
    if not isinstance(entry, CodedEntry) or entry.shape != shape:
        raise file.wrong(f"the form of {kind} describes another tensor")
    parts = {name: file.tensor(f"{kind}.{name}", p.dtype, p.shape) for name, p in entry.layout().items()}
    if checksum(parts.values()) != entry.crc32:
        raise file.wrong(f"the checksum of {kind} does not match, it is damaged")
    return decode_parts(kind, entry, parts)
