"""Reading the small JSON files beside a model's weights: from outside, so size and shape are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from runtime.errors import DecdecError

MAX_JSON_BYTES = 256 << 20


def read_bytes(path: Path) -> bytes:
    """The file's content; raises DecdecError when it is missing, unreadable or absurdly large."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise DecdecError(f"{path.name} is refused", f"it is larger than {MAX_JSON_BYTES >> 20} MB")
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise DecdecError(f"{path} cannot be read", reason, "prepare the model again") from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, `{}` when there is no such file; raises DecdecError when it is damaged."""
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(read_bytes(path), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecdecError(f"{path} is damaged", str(error), "prepare the model again") from error
