"""What must be set before torch, numba or the hub's library are imported."""

from __future__ import annotations

import os
import sys

import psutil

from runtime import locations


def usable_cores() -> int:
    """Physical cores this process may use: two threads on one core only slow each other's products down."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if sys.platform == "linux":
        return max(1, min(physical, len(os.sched_getaffinity(0))))
    return physical


def prepare() -> None:
    """Set defaults; what the user has set stays."""
    threads = str(usable_cores())
    defaults = {
        "NUMBA_CACHE_DIR": str(locations.compiled()),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "GOMP_SPINCOUNT": "2000",
        "NUMBA_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
