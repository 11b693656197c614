"""Page-locked host memory: how much there is, what locking takes, and how fast kernels read it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from kernels.gpu.dec.fetch import FetchConfig, ResidualRows
from kernels.gpu.host_memory import HostMemory, allocate, map_file, pinnable_bytes
from runtime.tuner.link import fetch_microseconds

Row = dict[str, Any]
# A residual of 28672 outputs, more rows than any cache holds.
_COLUMNS, _ROW_WORDS = 16384, 3584
_NBYTES = 4 * _COLUMNS * _ROW_WORDS
_CONFIG, _SHORT, _LONG = FetchConfig(16, 2), 16, 64
# Share of free memory that the probe may touch, and the most: locking takes 0.7 s a GiB.
_SHARE, _MOST = 0.6, 24 << 30


def memory_rows() -> Iterator[Row]:
    """torch's pinned tensor, an anonymous mapping and a file, then how much can be locked."""
    words = torch.randint(-(2**31), 2**31 - 1, (_COLUMNS, _ROW_WORDS), dtype=torch.int32)
    started = time.monotonic()
    pinned = words.pin_memory()
    yield _row("torch pin_memory", pinned, time.monotonic() - started)
    started = time.monotonic()
    with allocate(_NBYTES) as memory:
        yield from _filled("anonymous mapping", memory, words, time.monotonic() - started)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        path.write_bytes(words.numpy().tobytes())
        started = time.monotonic()
        with map_file(path) as memory:
            yield _row("mapped file", _words(memory), time.monotonic() - started)
    limit = min(int(psutil.virtual_memory().available * _SHARE), _MOST)
    started = time.monotonic()
    locked = pinnable_bytes(limit)
    yield {"memory": "probe", "GiB": locked / 2**30, "lock s": time.monotonic() - started}


def _filled(name: str, memory: HostMemory, words: Tensor, seconds: float) -> Iterator[Row]:
    own = _words(memory)
    own.copy_(words)
    yield _row(name, own, seconds)


def _words(memory: HostMemory) -> Tensor:
    return memory.tensor((_COLUMNS, _ROW_WORDS), torch.int32)


def _row(name: str, words: Tensor, seconds: float) -> Row:
    residual = ResidualRows(words, torch.ones(8 * _ROW_WORDS, device="cuda"))
    short, long = (fetch_microseconds(residual, k, _CONFIG) for k in (_SHORT, _LONG))
    fetched = (_LONG - _SHORT) * _COLUMNS / 1024 * residual.row_bytes
    return {
        "memory": name,
        "GiB": _NBYTES / 2**30,
        "lock s": seconds,
        "GB/s": fetched / (long - short) / 1e3,
    }
