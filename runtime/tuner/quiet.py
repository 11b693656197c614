"""Waiting for the machine to be idle: beside another busy program nothing that is measured is true."""

from __future__ import annotations

import time

import psutil

from runtime.progress import JobContext

BUSY_CORES = 0.3
SAMPLE_S = 0.5
PATIENCE_S = 15.0
BUSY_NOTE = "the machine is busy: tune again when it is idle, or the slider may promise too little"


def busy_cores() -> float:
    """Cores' worth of work that others do while this process sleeps."""
    psutil.cpu_times_percent()
    time.sleep(SAMPLE_S)
    times = psutil.cpu_times_percent()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return (psutil.cpu_count() or 1) * max(0.0, 100.0 - idle) / 100.0


def wait_for_quiet(ctx: JobContext) -> bool:
    """Wait until the machine is idle, at most PATIENCE_S; False if it stays busy. Progress in seconds."""
    started = time.monotonic()
    while busy_cores() > BUSY_CORES:
        waited = time.monotonic() - started
        if waited > PATIENCE_S:
            ctx.progress("wait", int(PATIENCE_S), int(PATIENCE_S), "s", BUSY_NOTE)
            return False
        ctx.progress(
            "wait", int(waited), int(PATIENCE_S), "s", "until other programs leave the processor idle"
        )
    return True
