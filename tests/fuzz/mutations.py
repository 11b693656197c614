"""Mutations of inputs: of bytes, and of JSON documents by their structure."""

from __future__ import annotations

import copy
import json
from random import Random

ODD_NUMBERS = (
    0, -1, 1, 2, 7, 8, 9, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, -(2**63), 10**30, 0.5, -0.0, 1e308, 1e-300, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
ODD_TEXTS = (
    "",
    "\0",
    "..",
    "../x",
    "/etc/passwd",
    "a" * 5000,
    "\ud800",
    "‮",
    "\x1b[2J",
    "NaN",
    "true",
    "é",
    "𐀀",
)
# Stands, as a text, for lists in lists, deeper than Python itself would write them.
VERY_DEEP = "very deep"
ODD_VALUES = (
    VERY_DEEP,
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": {}},
    *ODD_NUMBERS,
    *ODD_TEXTS,
)
ODD_WORDS = (
    b"\0" * 8,
    b"\xff" * 8,
    b"\xff" * 4,
    (2**63).to_bytes(8, "little"),
    (2**31).to_bytes(4, "little"),
)


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """One to four small changes: bits, bytes, words, cuts, copies."""
    changed = bytearray(data)
    for _ in range(1 + random.randrange(4)):
        random.choice((_flip, _byte, _word, _cut, _remove, _repeat, _insert, _number))(changed, random)
    return bytes(changed)


def mutate_json(value: object, random: Random, changes: int = 2) -> object:
    """The document with a few values replaced, removed, renamed, doubled or wrapped; `value` itself stays.

    One that is too deep to be walked through becomes a shallow one.
    """
    try:
        changed = json.loads(json.dumps(value))
        for _ in range(1 + random.randrange(changes)):
            changed = _changed_at(changed, random)
        json.dumps(changed)
    except RecursionError:
        return _odd_value(random)
    return changed


def mutate_json_bytes(data: bytes, random: Random) -> bytes:
    """A JSON text changed by structure, or by bytes where it is none or chance says so."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, random)
    if random.random() < 0.2:
        return mutate_bytes(data, random)
    return dumped(mutate_json(value, random))


def dumped(value: object) -> bytes:
    """JSON text of a mutated document."""
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    return text.replace(f'"{VERY_DEEP}"'.encode(), b"[" * 3000 + b"]" * 3000)


def odd_number(number: float, random: Random) -> float:
    """A number beside the given one, or one at a limit of some type."""
    if isinstance(number, int) and random.random() < 0.5:
        return random.choice(
            (number - 1, number + 1, -number, number * 2, number // 2, number ^ 1 << random.randrange(40))
        )
    return random.choice(ODD_NUMBERS)


def _changed_at(value: object, random: Random) -> object:
    places = list(_places(value))
    if not places:
        return _odd_value(random)
    owner, key = random.choice(places)
    choice = random.randrange(8)
    if choice == 0:
        del owner[key]
    elif choice == 1 and isinstance(owner, dict):
        owner[random.choice((key + "x", key.upper(), "", "__class__"))] = owner.pop(key)
    elif choice == 2:
        owner[key] = random.choice(([owner[key]], {"x": owner[key]}, _deep(random)))
    elif choice == 3:
        other, there = random.choice(places)
        if other is not owner:
            owner[key] = json.loads(json.dumps(other[there]))
    else:
        owner[key] = _other_value(owner[key], random)
    return value


def _other_value(value: object, random: Random) -> object:
    if isinstance(value, (int, float)) and random.random() < 0.8:
        return odd_number(value, random)
    if isinstance(value, list) and value and random.random() < 0.6:
        return random.choice((value + value[:1], value[:-1], value[::-1], value * 100))
    if isinstance(value, str) and value and random.random() < 0.5:
        return random.choice((value[:-1], value + value, value.upper(), value.replace("_", ""), value + "\n"))
    return _odd_value(random)


def _odd_value(random: Random) -> object:
    """A copy: what is put into a document may be changed there."""
    return copy.deepcopy(random.choice(ODD_VALUES))


def _deep(random: Random) -> object:
    value: object = 1
    for _ in range(random.choice((3, 60, 400))):
        value = [value]
    return value


def _places(value: object):
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _at(data: bytearray, random: Random) -> int:
    return random.randrange(len(data) + 1)


def _flip(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _byte(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def _word(data: bytearray, random: Random) -> None:
    at, word = _at(data, random), random.choice(ODD_WORDS)
    data[at : at + len(word)] = word


def _cut(data: bytearray, random: Random) -> None:
    if random.random() < 0.3:
        del data[_at(data, random) :]


def _remove(data: bytearray, random: Random) -> None:
    at = _at(data, random)
    del data[at : at + 1 + random.randrange(16)]


def _repeat(data: bytearray, random: Random) -> None:
    at = _at(data, random)
    data[at:at] = data[at : at + 1 + random.randrange(32)] * random.choice((1, 1, 2, 50))


def _insert(data: bytearray, random: Random) -> None:
    at = _at(data, random)
    data[at:at] = random.randbytes(1 + random.randrange(8))


def _number(data: bytearray, random: Random) -> None:
    """Counts and lengths one off: a little-endian word plus or minus one."""
    at, size = _at(data, random), random.choice((4, 8))
    word = bytes(data[at : at + size])
    if len(word) == size:
        number = int.from_bytes(word, "little") + random.choice((-1, 1))
        data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
