"""From a prepared model in the store to an engine that answers, on the device that was chosen."""

from __future__ import annotations

from runtime import devices
from runtime.engine.opened import LoadedEngine
from runtime.generation.engine import Engine
from runtime.progress import JobContext
from runtime.protocol.commands import Load

__all__ = ["LoadedEngine", "load_engine"]


def load_engine(command: Load, ctx: JobContext, keep_lossless: bool = True) -> LoadedEngine[Engine]:
    """Read a prepared model into memory. Raises DecdecError, Interrupted; progress "load" in blocks.

    `keep_lossless`: hold the INT8 layers beside a low-bit base where memory allows.
    """
    index = devices.answering_gpu()
    if index is None:
        from runtime.engine.cpu_loading import load_cpu_engine

        return load_cpu_engine(command, ctx, keep_lossless)
    from runtime.engine.gpu.loading import load_gpu_engine

    return load_gpu_engine(command, ctx, index, keep_lossless)
