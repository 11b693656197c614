"""Which file of a Hugging Face folder holds which tensor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from runtime.checkpoint.files import damaged, read_object, shown
from runtime.checkpoint.safetensors_header import SafetensorsEntry, read_header
from runtime.errors import DecdecError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
MAX_SHARDS = 4096


@dataclass(frozen=True, slots=True)
class Located:
    """A tensor and the file it lies in; `entry.name` is its name in that file."""

    file: Path
    entry: SafetensorsEntry


def locate(folder: Path) -> dict[str, Located]:
    """Every tensor of the folder in file order, all headers validated; raises DecdecError."""
    if (folder / INDEX).exists():
        return _by_index(folder / INDEX)
    if (folder / SINGLE).exists():
        return locate_in(folder / SINGLE)
    raise _no_weights(folder)


def locate_in(file: Path) -> dict[str, Located]:
    """Every tensor of one file in file order, its header validated; raises DecdecError."""
    return {name: Located(file, entry) for name, entry in read_header(file).items()}


def _by_index(index: Path) -> dict[str, Located]:
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise damaged(index, "it has no usable weight_map")
    found: dict[str, Located] = {}
    for file_name in _shard_names(index, weight_map):
        held = locate_in(index.parent / file_name)
        wanted = {name for name, file in weight_map.items() if file == file_name}
        if absent := sorted(wanted - set(held)):
            raise damaged(
                index, f"it says tensor {shown(absent[0])} is in {file_name}, which does not hold it"
            )
        found.update((name, where) for name, where in held.items() if name in wanted)
    return found


def _shard_names(index: Path, weight_map: dict[str, str]) -> list[str]:
    names = sorted(set(weight_map.values()))
    if len(names) > MAX_SHARDS:
        raise damaged(index, f"it names {len(names)} files")
    for name in names:
        if not _is_plain(name):
            raise damaged(
                index, f"it names the file {shown(name)}, which is not a plain .safetensors file name"
            )
    if missing := [name for name in names if not (index.parent / name).exists()]:
        raise DecdecError(
            f"The weights in {index.parent} are incomplete",
            f"{missing[0]} is missing ({len(missing)} of {len(names)} files)",
            "download the missing files into the folder",
        )
    return names


def _is_plain(name: str) -> bool:
    """Whether a name from outside stays in its folder on every system."""
    bare = PurePosixPath(name).name == name and PureWindowsPath(name).name == name
    return bare and name.endswith(".safetensors") and name.isprintable()


def _no_weights(folder: Path) -> DecdecError:
    what = f"No weights can be read from {folder}"
    if any(next(folder.glob(pattern), None) for pattern in PICKLED):
        return DecdecError(
            what, "it holds only pickled weights, which could run code", "convert them to safetensors"
        )
    return DecdecError(
        what, f"there is neither {SINGLE} nor {INDEX}", "download the model's safetensors files"
    )
