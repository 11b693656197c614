"""A small INT8-X model as one input, changed in single streams and numbers, its sums right again or not."""

from __future__ import annotations

import contextlib
import json
import zlib
from pathlib import Path
from random import Random

from runtime.errors import DecdecError
from runtime.int8x.config import parse_entry, seal
from runtime.int8x.writer import stored_key
from tests.fuzz import bundle
from tests.fuzz.mutations import dumped, mutate_json, odd_number
from tests.fuzz.safetensors_files import as_file, split

SHARD, INDEX = "model-00001.safetensors", "model.safetensors.index.json"
NAMES = ("config.json", INDEX, SHARD)
# Which sums `forge` makes right: of tensors, of files, of the configuration.
TENSORS, FILES, CONFIG = 1, 2, 4
ALL = TENSORS | FILES | CONFIG


def pack(folder: Path, flags: int = ALL) -> bytes:
    """The model in a folder as an input."""
    return bytes([flags]) + bundle.pack(NAMES, {name: (folder / name).read_bytes() for name in NAMES})


def write(data: bytes, folder: Path) -> None:
    """The folder of an input, its sums made right as its first byte says."""
    files = bundle.unpack(NAMES, data[1:])
    with contextlib.suppress(KeyError, ValueError, TypeError, AttributeError, RecursionError):
        files = forge(files, data[0] if data else 0)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def forge(files: dict[str, bytes], flags: int) -> dict[str, bytes]:
    """The files with the sums that `flags` names."""
    config = json.loads(files["config.json"])
    about, shard = config["quantization_config"], files[SHARD]
    if flags & TENSORS:
        _forge_tensors(about["tensors"], shard)
    if flags & FILES:
        head = shard[: 8 + int.from_bytes(shard[:8], "little")]
        about["files"] = {INDEX: zlib.crc32(files[INDEX]), SHARD: zlib.crc32(head)}
    if flags & CONFIG:
        config["quantization_config"] = seal(about)
    return {**files, "config.json": dumped(config)}


def mutate(data: bytes, random: Random) -> bytes:
    """Change numbers of an entry, bytes of a stream, a stream's length, or any file."""
    files = bundle.unpack(NAMES, data[1:])
    flags = random.choice((ALL, ALL, ALL, ALL, data[0] if data else 0, random.randrange(8)))
    if set(files) != set(NAMES) or random.random() < 0.15:
        return bytes([flags]) + bundle.mutate(NAMES, data[1:], random)
    try:
        config, shard = json.loads(files["config.json"]), split(files[SHARD])
        change = random.choice((_bytes, _bytes, _number, _number, _length, _length, _codec, _settings))
        change(config, *shard, files, random)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
        return bytes([flags]) + bundle.mutate(NAMES, data[1:], random)
    return bytes([flags]) + bundle.pack(NAMES, files)


def _forge_tensors(entries: dict, shard: bytes) -> None:
    header, content = split(shard)
    for name, entry in entries.items():
        try:
            layout = parse_entry(name, entry).layout()
            places = [header[stored_key(name, suffix)]["data_offsets"] for suffix in layout]
        except (DecdecError, KeyError, TypeError, AttributeError):
            continue
        crc = 0
        for begin, end in places:
            crc = zlib.crc32(content[begin:end], crc)
        entry["crc32"] = crc


def _stream(header: dict, random: Random) -> dict:
    return header[random.choice([name for name in header if name != "__metadata__"])]


def _bytes(config: dict, header: dict, content: bytes, files: dict, random: Random) -> None:
    """A few bytes of one stream."""
    begin, end = _stream(header, random)["data_offsets"]
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(begin, end)
        changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << random.randrange(8)))
    if random.random() < 0.2:
        changed[begin:end] = bytes([random.choice((0, 1, 0x7F, 0x80, 0xFF))]) * (end - begin)
    files[SHARD] = as_file(header, bytes(changed))


def _number(config: dict, header: dict, content: bytes, files: dict, random: Random) -> None:
    """One number of one entry."""
    entries = config["quantization_config"]["tensors"]
    entry = entries[random.choice(list(entries))]
    key = random.choice(list(entry))
    value = entry[key]
    if isinstance(value, list) and value:
        at = random.randrange(len(value))
        if isinstance(value[at], int):
            value[at] = odd_number(value[at], random)
        if random.random() < 0.3 and len(value) > 1:
            value[at - 1] += value[at] if random.random() < 0.5 else -1
    elif isinstance(value, int):
        entry[key] = odd_number(value, random)
    else:
        entry[key] = random.choice(
            ("row", "tensor", "aware", "uint16", "int32", "float32", "int64", None, [])
        )
    files["config.json"] = dumped(config)


def _length(config: dict, header: dict, content: bytes, files: dict, random: Random) -> None:
    """A stream grown or cut, and everything that says its length with it."""
    names = [name for name in header if name != "__metadata__"]
    key = random.choice(names)
    entry = header[key]
    (begin, end), count = entry["data_offsets"], _numel(entry["shape"])
    item = (end - begin) // max(count, 1)
    wanted = max(0, random.choice((count - 1, count + 1, count // 2, count * 2, 0, 1)))
    fresh = (content[begin:end] * 3 + bytes(item * 4))[: wanted * item]
    moved = len(fresh) - (end - begin)
    for name in names:
        offsets = header[name]["data_offsets"]
        header[name]["data_offsets"] = [at + moved if at >= end and at != begin else at for at in offsets]
    entry["data_offsets"], entry["shape"] = [begin, begin + len(fresh)], [wanted]
    tensor, _, suffix = key.rpartition(".")
    described = config["quantization_config"]["tensors"].get(tensor, {})
    if isinstance(described.get(suffix), int):
        described[suffix] = wanted
    files[SHARD] = as_file(header, content[:begin] + fresh + content[end:])
    files["config.json"] = dumped(config)


def _codec(config: dict, header: dict, content: bytes, files: dict, random: Random) -> None:
    """Entries of two tensors exchanged, or one made another codec's."""
    entries = config["quantization_config"]["tensors"]
    one, other = random.choice(list(entries)), random.choice(list(entries))
    if random.random() < 0.5:
        entries[one], entries[other] = entries[other], entries[one]
    else:
        entries[one]["codec"] = random.choice(("raw", "bitmap", "adaptive", "plain"))
    files["config.json"] = dumped(config)


def _settings(config: dict, header: dict, content: bytes, files: dict, random: Random) -> None:
    """The model's own settings, or the whole of quantization_config."""
    if random.random() < 0.7:
        about = config.pop("quantization_config")
        changed = mutate_json(config, random, 1)
        config = {**changed, "quantization_config": about} if isinstance(changed, dict) else changed
    else:
        config = mutate_json(config, random, 1)
    files["config.json"] = dumped(config)


def _numel(shape: list) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
