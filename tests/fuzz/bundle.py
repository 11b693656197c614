"""Several files as one input: a byte for the name, four for the length, then the content, and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from tests.fuzz.mutations import mutate_bytes, mutate_json_bytes
from tests.fuzz.safetensors_files import mutate_safetensors

Change = Callable[[bytes, Random], bytes]


def pack(names: Sequence[str], files: Mapping[str, bytes]) -> bytes:
    """The input of these files; `names` are all that an input may have."""
    parts = [
        bytes([names.index(name)]) + len(data).to_bytes(4, "little") + data for name, data in files.items()
    ]
    return b"".join(parts)


def unpack(names: Sequence[str], data: bytes) -> dict[str, bytes]:
    """The files of any input: names wrap around, and what is cut off is short."""
    files: dict[str, bytes] = {}
    while data:
        name, length = names[data[0] % len(names)], int.from_bytes(data[1:5], "little")
        files[name], data = data[5 : 5 + length], data[5 + length :]
    return files


def write(names: Sequence[str], data: bytes, folder: Path) -> None:
    """The files of an input in a folder."""
    for name, content in unpack(names, data).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def mutate(names: Sequence[str], data: bytes, random: Random) -> bytes:
    """One file changed in the way of its kind, seldom one removed."""
    files = unpack(names, data)
    if not files:
        return data
    name = random.choice(list(files))
    if random.random() < 0.03:
        del files[name]
    else:
        files[name] = _change_of(name)(files[name], random)
    return pack(names, files)


def _change_of(name: str) -> Change:
    if name.endswith(".json"):
        return mutate_json_bytes
    return mutate_safetensors if name.endswith(".safetensors") else mutate_bytes
