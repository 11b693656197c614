"""Safetensors files, right and wrong, and changes of their headers and data."""

from __future__ import annotations

import json
from random import Random

from tests.fuzz.mutations import dumped, mutate_bytes, mutate_json, odd_number

OFF = (0, 0, 0, 0, 0, -1, 1, 2**62)


def as_file(header: object, data: bytes, off: int = 0) -> bytes:
    """A file of this header and data; its length is wrong by `off`."""
    text = dumped(header)
    return ((len(text) + off) % 2**64).to_bytes(8, "little") + text + data


def split(file: bytes) -> tuple[dict, bytes] | None:
    """Header and data; None where there is no header."""
    length = int.from_bytes(file[:8], "little")
    try:
        header = json.loads(file[8 : 8 + length])
    except (ValueError, RecursionError, OverflowError):
        return None
    return (header, file[8 + length :]) if isinstance(header, dict) else None


def mutate_safetensors(file: bytes, random: Random) -> bytes:
    """Change the header as JSON, or numbers of one tensor together, or the data alone."""
    parts = split(file)
    if parts is None:
        return mutate_bytes(file, random)
    header, data = parts
    choice = random.random()
    if choice < 0.4:
        return as_file(header, _other_data(data, random))
    if choice < 0.6:
        return as_file(_other_tensor(header, random), data)
    return as_file(mutate_json(header, random), data, random.choice(OFF))


def _other_data(data: bytes, random: Random) -> bytes:
    """The same length: values change, shapes still fit."""
    changed = bytearray(data)
    for _ in range(1 + random.randrange(6)):
        if changed:
            at = random.randrange(len(changed))
            word = random.choice((b"\0", b"\xff", b"\x80", b"\x7f", b"\0\0\xc0\x7f", b"\xff" * 4, b"\0" * 8))
            changed[at : at + len(word)] = word
    return bytes(changed[: len(data)])


def _other_tensor(header: dict, random: Random) -> dict:
    """One tensor of another type, or a shape of as many values: the offsets stay right."""
    names = [name for name, entry in header.items() if isinstance(entry, dict) and "shape" in entry]
    if not names:
        return header
    entry = dict(header[random.choice(names)])
    shape = list(entry["shape"]) if isinstance(entry["shape"], list) else []
    if random.random() < 0.5:
        entry["dtype"] = random.choice(
            ("F32", "F16", "BF16", "I32", "U32", "I16", "U16", "I8", "U8", "BOOL", "F8_E4M3")
        )
    elif shape:
        number = shape[random.randrange(len(shape))]
        shape = random.choice(
            ([*shape, 1], shape[::-1], [0, *shape], [*shape, odd_number(number, random), 0])
        )
    return {**header, random.choice(names): {**entry, "shape": shape}}
