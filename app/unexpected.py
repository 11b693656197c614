"""A failure that nobody foresaw: its traceback goes into a log, a person gets one sentence."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
import traceback
from pathlib import Path

from runtime import locations


def told(error: BaseException) -> str:
    """Log the failure; the sentence that says what it was and where the details are."""
    head = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(sys.argv)}"
    path = _append(f"{head}\n{''.join(traceback.format_exception(error))}\n")
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"An unexpected error: {reason}. Details are in {path}."


def _append(text: str) -> Path:
    for folder in (locations.home() / "logs", Path(tempfile.gettempdir())):
        path = folder / "decdec-chat.log"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
            break
    return path
