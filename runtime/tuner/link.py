"""How fast a GPU's kernels read page-locked host memory: what a correction has to live on."""

from __future__ import annotations

import torch

from kernels.gpu.dec.correction import fetch_correction
from kernels.gpu.dec.fetch import FetchConfig, ResidualRows, new_fetch
from kernels.gpu.dec.selection import new_selection
from kernels.gpu.prepare import prepare
from runtime.tuner.replays import Replay

# Rows as long as a large model's, enough of them to keep the start out of the result.
_COLUMNS, _ROW_WORDS = 4096, 3584
_SMALL, _LARGE = 64, 256
_FETCHES = 4
_CONFIG = FetchConfig(16, 2)


def link_gb_s(device: torch.device) -> float:
    """Bytes per nanosecond, from two lengths of a list fetched by a kernel alone: no start counts."""
    words = torch.randint(-(2**31), 2**31 - 1, (_COLUMNS, _ROW_WORDS), dtype=torch.int32).pin_memory()
    residual = ResidualRows(words, torch.ones(8 * _ROW_WORDS, device=device))
    short, long = (fetch_microseconds(residual, k, _CONFIG) for k in (_SMALL, _LARGE))
    fetched = (_LARGE - _SMALL) * _COLUMNS / 1024 * residual.row_bytes
    return fetched / (long - short) / 1e3


def fetch_microseconds(residual: ResidualRows, k_chunk: int, config: FetchConfig) -> float:
    """Microseconds of the compensation kernel alone, without selection and sum."""
    device = residual.scale.device
    selection = new_selection(residual.columns, device, k_chunk)
    prepare(torch.randn(residual.columns, device=device), selection=selection)
    fetch = new_fetch(residual, selection, config)
    return Replay([lambda: fetch_correction(fetch)] * _FETCHES).microseconds() / _FETCHES
