"""Any exception as one sentence; the unexpected ones with their traceback in a log file."""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

from runtime import locations
from runtime.errors import DecdecError
from runtime.protocol.events import Failed
from runtime.shortage import first_line, is_out_of_memory, shortage
from runtime.store.oserrors import explain

MAX_LOG_BYTES = 1 << 20


def log_file() -> Path:
    """Where tracebacks of unexpected failures go."""
    return locations.home() / "logs" / "errors.log"


def failed(job: str, error: BaseException) -> Failed:
    """The event that tells of an exception."""
    if isinstance(error, DecdecError):
        return Failed(job, error.what, error.why, error.fix, error.code)
    if is_out_of_memory(error):
        fix = "close other programs, or take a smaller model or a shorter context"
        return Failed(job, "Memory ran out", shortage(error), fix)
    if isinstance(error, OSError) and error.errno is not None:
        return _system_failure(job, error)
    where = _log(error)
    return Failed(job, f"Something unexpected went wrong in {job}", first_line(error), where)


def _system_failure(job: str, error: OSError) -> Failed:
    """Libraries' files without a name (a cache of compiled kernels) lie in the home folder."""
    path = Path(error.filename) if isinstance(error.filename, str) else locations.home()
    explained = explain(error, path, job.capitalize())
    return Failed(job, explained.what, explained.why, explained.fix)


def _log(error: BaseException) -> str:
    """Append the traceback; says where it is."""
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{''.join(traceback.format_exception(error))}\n")
    except OSError:
        traceback.print_exception(error, file=sys.stderr)
        return "run it again"
    return f"the details are in {path}"
