"""What must be set before torch, numba or the hub's library are imported."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import psutil

from runtime import locations


def usable_cores() -> int:
    """Physical cores this process may use: two threads on one core only slow each other's products down."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if sys.platform == "linux":
        return max(1, min(physical, len(os.sched_getaffinity(0))))
    return physical


def kernel_cache() -> Path:
    """Folder for compiled kernels, named after their sources.

    numba notices a change of a function's own file, but not of the functions compiled into it.
    """
    spec = importlib.util.find_spec("kernels")
    folders = [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or []]
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return locations.compiled() / digest.hexdigest()[:16]


def forget_old_kernels(keep: Path) -> None:
    """Delete what other versions compiled; a process still running them only compiles again."""
    if keep.parent.is_dir():
        for folder in keep.parent.iterdir():
            if folder != keep and folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)


def prepare() -> None:
    """Set defaults; what the user has set stays."""
    threads = str(usable_cores())
    compiled = kernel_cache()
    forget_old_kernels(compiled)
    defaults = {
        "NUMBA_CACHE_DIR": str(compiled),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # Enough to bridge the small operations between two products; longer spinning threads starve a front
        # end that shares the cores, and each other: one busy neighbour made every product take 8 ms.
        "GOMP_SPINCOUNT": "5000",
        "NUMBA_NUM_THREADS": threads,
        # Huge pages: corrected rows lie all over a table far larger than what the TLB covers in 4 KiB pages.
        "THP_MEM_ALLOC_ENABLE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
