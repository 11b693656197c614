"""Small files of a checkpoint, read with bounds; anything odd becomes one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from runtime.errors import DecdecError

MAX_JSON_BYTES = 64 << 20
MAX_SHOWN = 120
INFINITY_BITS = {torch.float32: 0x7F800000, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}
LFS_MAGIC = b"version https://git-lfs.github.com/spec/"
DOWNLOAD_AGAIN = "download the file again"


def damaged(path: Path, why: str, fix: str = DOWNLOAD_AGAIN) -> DecdecError:
    """The error for a file whose content cannot be used."""
    return DecdecError(f"{path.name} cannot be used", why, fix)


def file_size(path: Path) -> int:
    """Size of a regular file (links are followed: the hub's cache is made of them)."""
    try:
        if not path.is_file():
            raise DecdecError(f"{path} cannot be opened", "there is no such file", "check the path")
        return path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DecdecError:
    """The error for a file the operating system does not let us read."""
    return DecdecError(
        f"{path} cannot be read", error.strerror or str(error), "check the path and its permissions"
    )


def refuse_pointer(path: Path, head: bytes) -> None:
    """Raise if `head`, a file's first bytes, is a git-lfs pointer instead of the data it stands for."""
    if head.startswith(LFS_MAGIC):
        raise damaged(
            path, "it is a git-lfs pointer, not the file itself", "run `git lfs pull` in its folder"
        )


def read_bounded(path: Path, limit: int = MAX_JSON_BYTES) -> bytes:
    """A whole file of at most `limit` bytes."""
    size = file_size(path)
    if size > limit:
        raise damaged(path, f"it has {size} bytes where at most {limit} make sense")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    refuse_pointer(path, data)
    return data


def parse_object(path: Path, data: bytes) -> dict[str, Any]:
    """A JSON object without repeated keys; `path` is named in errors."""
    try:
        value = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise damaged(
            path, f"its JSON cannot be read ({type(error).__name__}: {shown(str(error))})"
        ) from error
    if not isinstance(value, dict):
        raise damaged(path, "its JSON is not an object")
    return value


def read_object(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """The JSON object in a file of at most `limit` bytes."""
    data = read_bounded(path, limit)
    value = parse_object(path, data)
    _refuse_half_characters(path, data, value)
    return value


def require_finite(path: Path, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself; raises if it holds NaN or infinity, which no trained weight does."""
    if tensor.numel() and not _is_finite(tensor):
        raise damaged(path, f"tensor {shown(name)} holds values that are not numbers")
    return tensor


def _is_finite(tensor: torch.Tensor) -> bool:
    """Whether a float32, float16 or bfloat16 tensor is finite, by comparing bit patterns.

    Read as signed integers, positive infinity and NaN are the largest values; read as unsigned, the negative
    ones. Two maxima in numpy copy nothing and, unlike torch's, never wait for a second core that may be busy.
    """
    wide = tensor.itemsize == 4
    bits = tensor.contiguous().view(torch.int32 if wide else torch.int16).numpy()
    infinity = INFINITY_BITS[tensor.dtype]
    unsigned = bits.view(np.uint32 if wide else np.uint16)
    return bool(bits.max() < infinity and unsigned.max() < infinity + (1 << 8 * tensor.itemsize - 1))


def shown(name: str) -> str:
    """A name from outside, cut and escaped so that it can stand in a message."""
    cut = name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "…"
    return cut if cut.isprintable() else ascii(cut)


def _refuse_half_characters(path: Path, data: bytes, value: dict[str, Any]) -> None:
    r"""Raise for an escaped half of a pair (`\ud800` alone), which can be read but not written again."""
    if b"\\ud" not in data.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise damaged(path, "its JSON holds half a character") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is repeated")
    return value
