"""How a worker process is started, and what its end means."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from runtime import locations
from runtime.protocol.events import Failed
from runtime.protocol.lines import MAX_LINE_BYTES

MAX_LOG_BYTES = 1 << 20
STREAM_LIMIT = MAX_LINE_BYTES + 1
BESIDE_NICENESS = 10
_LIKELY = {
    "SIGKILL": ", most likely because memory ran out",
    "SIGBUS": ", most likely because a file of the model became shorter, or its disk went away",
}


def worker_command() -> list[str]:
    """The worker's argv: `DECDEC_WORKER` split as by a shell, or this interpreter with `runtime.worker`."""
    override = os.environ.get("DECDEC_WORKER")
    return shlex.split(override) if override else [sys.executable, "-m", "runtime.worker"]


def spawn_options() -> dict[str, Any]:
    """Keep the terminal's Ctrl+C away from the worker: its owner decides what an interrupt means."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def make_way(pid: int) -> None:
    """Let a process run only in the time that others leave; where the system refuses, it runs as it is."""
    import psutil  # what is done in front of the user never needs it

    quiet = psutil.BELOW_NORMAL_PRIORITY_CLASS if sys.platform == "win32" else BESIDE_NICENESS
    with contextlib.suppress(psutil.Error, OSError):
        psutil.Process(pid).nice(quiet)


def log_file() -> Path:
    """Where a worker's stderr goes (libraries' warnings, native crashes)."""
    return locations.home() / "logs" / "stderr.log"


def open_log() -> IO[bytes] | int:
    """An append handle to `log_file`, or DEVNULL where nothing can be written; kept below two megabytes."""
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")
    except OSError:
        return subprocess.DEVNULL


def close_log(log: IO[bytes] | int) -> None:
    """Close this process's copy of the handle."""
    if not isinstance(log, int):
        log.close()


def death(code: int | None) -> Failed:
    """The event that stands for a worker that went away by itself."""
    why = f"it exited with code {code}"
    if code is not None and code < 0:
        why = f"it was ended by signal {-code}"
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            why = f"it was ended by {name}{_LIKELY.get(name, '')}"
    return Failed("worker", "The engine's process ended", why, f"try again; details are in {log_file()}")


def unstartable(error: OSError) -> Failed:
    """The event for a worker that could not be started at all."""
    return Failed("worker", "The engine's process could not be started", str(error))
