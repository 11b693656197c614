"""The real worker with the fake engine, and jobs that misbehave."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.worker import jobs
from runtime.worker.main import main


def noisy(args, context):
    print("a library prints")
    os.write(1, b"a C library prints\n")
    os.system("echo a child prints")
    return {"environment": os.environ["NUMBA_CACHE_DIR"], "torch": "torch" in sys.modules}


def unexpected(args, context):
    raise KeyError("surprise")


def memory(args, context):
    import torch

    return {"bytes": torch.empty(1 << 60, dtype=torch.uint8).numel()}


def full_disk(args, context):
    raise OSError(28, "No space left on device", "/some/file")


def slow(args, context):
    for i in range(1000):
        context.progress("slow", i, 1000, "steps")
        time.sleep(0.01)
    return {}


def deaf(args, context):
    context.progress("deaf", 0, 1, "steps")
    time.sleep(60)
    return {}


if __name__ == "__main__":
    jobs.LOADER = "tests.fakes.fake_engine:load"
    for function in (noisy, unexpected, memory, full_disk, slow, deaf):
        jobs.JOBS[function.__name__] = f"__main__:{function.__name__}"
    main()
