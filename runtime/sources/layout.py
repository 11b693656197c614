"""The Hugging Face layout of a model: which files count, and whether a folder is whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from runtime.errors import DecdecError
from runtime.store.oserrors import translated

INDEX = "model.safetensors.index.json"
MAX_JSON_BYTES = 64 << 20
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_EXTRAS = re.compile(r".+\.(json|jinja|txt)|tokenizer\.model")
_PICKLES = re.compile(r".+\.(bin|pt|pth|ckpt|pkl)")


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def select(names: Iterable[str], where: str) -> list[str]:
    """The files of a model among the names at its top level: safetensors, JSON, tokenizer and template.

    Raises DecdecError when there is no config.json or nothing but weights in formats that can run code.
    """
    plain = sorted(name for name in names if _PLAIN.fullmatch(name))
    weights = [name for name in plain if name.endswith(".safetensors")]
    weights = [name for name in weights if name.startswith("model")] or weights
    if not weights:
        raise DecdecError(
            f"{where} cannot be used", _why_no_weights(plain), "choose a model with safetensors weights"
        )
    if "config.json" not in plain:
        raise DecdecError(f"{where} cannot be used", "it has no config.json")
    return [name for name in plain if name in weights or _EXTRAS.fullmatch(name)]


def check_folder(folder: Path) -> None:
    """Raise DecdecError unless a folder holds a whole model: configuration and every shard of the weights."""
    with translated(folder, f"Reading {folder.name}"):
        names = [path.name for path in folder.iterdir() if path.is_file()]
    files = select(names, str(folder))
    for name in files:
        reject_lfs_pointer(folder / name)
    missing = sorted(_shards(folder) - set(names)) if INDEX in files else []
    if missing:
        raise DecdecError(f"{folder} is not whole", f"{missing[0]} is missing", "copy or download it again")


def reject_lfs_pointer(path: Path) -> None:
    """Raise DecdecError if a file is the stand-in that git leaves when git-lfs was not installed."""
    if head_of(path, len(_LFS_POINTER)) == _LFS_POINTER:
        raise DecdecError(
            f"{path} holds no data",
            "it is a git-lfs pointer",
            "run git lfs pull in its folder, or download it again",
        )


def head_of(path: Path, count: int) -> bytes:
    """The first bytes of a file."""
    with translated(path, f"Reading {path.name}"), path.open("rb") as file:
        return file.read(count)


def _shards(folder: Path) -> set[str]:
    content = head_of(folder / INDEX, MAX_JSON_BYTES + 1)
    try:
        if len(content) > MAX_JSON_BYTES:
            raise ValueError("it is absurdly large")
        shards = set(msgspec.json.decode(content, type=_Index).weight_map.values())
        if not all(map(_PLAIN.fullmatch, shards)):
            raise ValueError("it names files outside its folder")
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DecdecError(f"{folder / INDEX} is damaged", str(error), "copy or download it again") from error
    return shards


def _why_no_weights(names: list[str]) -> str:
    if any(map(_PICKLES.fullmatch, names)):
        return "its weights are pickle files, which can run code when opened"
    if any(name.endswith(".gguf") for name in names):
        return "it holds GGUF files; download one of them and give its path"
    return "it holds no safetensors weights"
