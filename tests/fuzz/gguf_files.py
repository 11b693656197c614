"""GGUF files taken apart, changed key by key and tensor by tensor, and put together again."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.fuzz.mutations import ODD_NUMBERS, ODD_TEXTS, mutate_bytes

STRING, ARRAY = 8, 9
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<B",
    10: "<Q",
    11: "<q",
    12: "<d",
}
ODD_WORDS = (0, 1, 2, 3, 31, 32, 33, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


@dataclass(frozen=True)
class Gguf:
    """keys: name -> (type, value), arrays as (item type, items); tensors: [name, dims, type, offset]."""

    keys: list[tuple[bytes, int, Any]]
    tensors: list[list]
    data: bytes
    counts: tuple[int, int] = (0, 0)


class Reader:
    """A position in bytes; raises ValueError or struct.error at the end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> Any:
        """One number."""
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self) -> bytes:
        """A text with its length before it."""
        length = self.take("<Q")
        if length > len(self.data) - self.at:
            raise ValueError("cut off")
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self, kind: int) -> Any:
        """A value of a type."""
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.take(SCALARS[kind])
        item, count = self.take("<I"), self.take("<Q")
        if count > len(self.data):
            raise ValueError("cut off")
        return item, [self.value(item) for _ in range(count)]


def parse(data: bytes) -> Gguf:
    """A file taken apart; KeyError, ValueError or struct.error where it is none."""
    reader = Reader(data)
    if data[:4] != b"GGUF":
        raise ValueError("no GGUF")
    reader.at = 8
    n_tensors, n_keys = reader.take("<Q"), reader.take("<Q")
    if max(n_tensors, n_keys) > len(data):
        raise ValueError("cut off")
    keys = []
    for _ in range(n_keys):
        name, kind = reader.text(), reader.take("<I")
        keys.append((name, kind, reader.value(kind)))
    tensors = []
    for _ in range(n_tensors):
        name, n_dims = reader.text(), reader.take("<I")
        dims = [reader.take("<Q") for _ in range(min(n_dims, 8))]
        tensors.append([name, dims, reader.take("<I"), reader.take("<Q")])
    return Gguf(keys, tensors, data[-(-reader.at // 32) * 32 :])


def build(file: Gguf) -> bytes:
    """The bytes of a file; `counts` are added to the true ones."""
    n_tensors, n_keys = (len(file.tensors) + file.counts[0], len(file.keys) + file.counts[1])
    parts = [b"GGUF", _pack("<I", 3), _pack("<Q", n_tensors), _pack("<Q", n_keys)]
    parts += [_text(name) + _pack("<I", kind) + _value(kind, value) for name, kind, value in file.keys]
    for name, dims, kind, offset in file.tensors:
        sizes = b"".join(_pack("<Q", dim) for dim in dims)
        parts.append(_text(name) + _pack("<I", len(dims)) + sizes + _pack("<I", kind) + _pack("<Q", offset))
    head = b"".join(parts)
    return head + bytes(-len(head) % 32) + file.data


def mutate_gguf(data: bytes, random: Random) -> bytes:
    """One or two keys or tensors changed, or bytes where it is no GGUF or chance says so."""
    try:
        file = parse(data)
    except (KeyError, ValueError, struct.error, RecursionError):
        return mutate_bytes(data, random)
    if random.random() < 0.1:
        return mutate_bytes(data, random)
    for _ in range(1 + random.randrange(2)):
        change = random.choice(
            (_change_key, _change_key, _change_key, _change_tensor, _change_data, _change_counts)
        )
        file = change(file, random)
    return build(file)


def _change_key(file: Gguf, random: Random) -> Gguf:
    keys = list(file.keys)
    if not keys:
        return file
    at = random.randrange(len(keys))
    name, kind, value = keys[at]
    choice = random.random()
    if choice < 0.1:
        del keys[at]
    elif choice < 0.2:
        keys.insert(at, keys[random.randrange(len(keys))])
    elif choice < 0.3:
        keys[at] = (name, *random.choice(keys)[1:])
    else:
        keys[at] = (name, *_other_value(kind, value, random))
    return replace(file, keys=keys)


def _other_value(kind: int, value: Any, random: Random) -> tuple[int, Any]:
    if kind == STRING:
        return STRING, random.choice((mutate_bytes(value, random), _odd_text(random), value[:-1], value * 2))
    if kind == ARRAY:
        return ARRAY, _other_array(*value, random)
    kind = random.choice((kind, kind, 4, 5, 6, 7, 10, 11, 12))
    return kind, random.choice((value, value + 1, value - 1, -value, *random.choices(ODD_NUMBERS, k=4)))


def _other_array(kind: int, items: list, random: Random) -> tuple[int, list]:
    items = list(items)
    choice = random.randrange(6)
    if choice == 0 or not items:
        return kind, items[: random.randrange(len(items) + 1)]
    at = random.randrange(len(items))
    if choice == 1:
        items.insert(at, random.choice(items))
    elif choice == 2:
        items = items * random.choice((2, 5))
    elif choice == 3:
        random.shuffle(items)
    elif kind in SCALARS or kind == STRING:
        items[at] = _other_value(kind, items[at], random)[1]
    return kind, items


def _change_tensor(file: Gguf, random: Random) -> Gguf:
    tensors = [list(tensor) for tensor in file.tensors]
    if not tensors:
        return file
    tensor, field = random.choice(tensors), random.randrange(5)
    if field == 0:
        tensor[0] = random.choice((mutate_bytes(tensor[0], random), random.choice(tensors)[0]))
    elif field == 1 and tensor[1]:
        dims = list(tensor[1])
        at = random.randrange(len(dims))
        dims[at] = random.choice((dims[at] + 1, dims[at] - 1, dims[at] * 2, *ODD_WORDS))
        tensor[1] = random.choice((dims, dims[::-1], [*dims, 1], dims[:-1]))
    elif field == 2:
        tensor[2] = random.randrange(45)
    elif field == 3:
        tensor[3] = random.choice((tensor[3] + 32, tensor[3] - 32, tensor[3] + 1, *ODD_WORDS))
    else:
        tensors.remove(tensor)
    return replace(file, tensors=tensors)


def _change_data(file: Gguf, random: Random) -> Gguf:
    if random.random() < 0.3:
        return replace(file, data=file.data[: random.randrange(len(file.data) + 1)])
    data = bytearray(file.data)
    for _ in range(4):
        if data:
            data[random.randrange(len(data))] = random.choice((0, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return replace(file, data=bytes(data))


def _change_counts(file: Gguf, random: Random) -> Gguf:
    return replace(file, counts=random.choice(((1, 0), (0, 1), (-1, 0), (0, -1), (2**60, 0), (0, 2**40))))


def _odd_text(random: Random) -> bytes:
    return random.choice(ODD_TEXTS).encode("utf-8", "surrogatepass")


def _pack(form: str, value: Any) -> bytes:
    """A number in a form, wrapped around where it does not fit."""
    size = struct.calcsize(form)
    try:
        if form[1] in "fd":
            return struct.pack(form, value)
        return (int(value) % (1 << 8 * size)).to_bytes(size, "little")
    except (OverflowError, ValueError):
        return b"\xff" * size


def _text(text: bytes) -> bytes:
    return _pack("<Q", len(text)) + text


def _value(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return _text(value)
    if kind == ARRAY:
        return (
            _pack("<I", value[0])
            + _pack("<Q", len(value[1]))
            + b"".join(_value(value[0], v) for v in value[1])
        )
    return _pack(SCALARS[kind], value)
