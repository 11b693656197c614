"""Files that a user gives for an evaluation: nothing in them is believed before it was checked."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from runtime.errors import DecdecError

MAX_BYTES = 64 << 20

T = TypeVar("T")


def read_text(path: Path) -> str:
    """A UTF-8 file of moderate size; DecdecError when it is missing, large, or something else."""
    try:
        if not path.is_file():
            raise wrong(path, "there is no such file")
        if path.stat().st_size > MAX_BYTES:
            raise wrong(path, f"it is larger than {MAX_BYTES >> 20} MB")
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise wrong(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise wrong(path, "it is not UTF-8") from error


def read_json(path: Path, kind: type[T]) -> T:
    """A JSON document of a declared shape; fields that nobody asked for are passed over."""
    try:
        return msgspec.json.decode(read_text(path).encode(), type=kind)
    except msgspec.DecodeError as error:
        raise wrong(path, str(error)) from error


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """JSON documents of a declared shape, one a line; blank lines are passed over."""
    decoder, found = msgspec.json.Decoder(kind), []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            try:
                found.append(decoder.decode(line))
            except msgspec.DecodeError as error:
                raise wrong(path, f"line {number}: {error}") from error
    return found


def wrong(path: Path, why: str) -> DecdecError:
    """The error for a given file."""
    return DecdecError(f"{path} cannot be used", why)
