"""How fast this machine's CPU encodes and decodes INT8-X, rounding from float included and not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from kernels.int8x import absmax_scales, quantise
from runtime.bench.coding import ADAPTIVE, BEST, PAPER, Codec
from runtime.bench.table import Row, Table

CODECS = (PAPER, BEST, ADAPTIVE)
REPEATS = 3


def speed_rows(name: str, weights: Sequence[torch.Tensor], codecs: Sequence[Codec] = CODECS) -> list[Row]:
    """Million weights a second over float matrices, each codec the best of a few rounds."""
    count = sum(weight.numel() for weight in weights)
    matrices = [_rounded(weight) for weight in weights]
    rounding = _best(lambda: [_rounded(weight) for weight in weights])
    return [_row(name, codec, matrices, rounding, count) for codec in codecs]


def speed_table(rows: list[Row], threads: int) -> Table:
    """Rows of `speed_rows`."""
    notes = [
        f"Million weights a second with {threads} threads. From float: rounding with one scale included."
    ]
    return Table("cpu", "Encoding and decoding on the CPU", rows, notes)


def _row(name: str, codec: Codec, matrices: list[torch.Tensor], rounding: float, count: int) -> Row:
    coded = [codec.encode(q) for q in matrices]
    encode = _best(lambda: [codec.encode(q) for q in matrices])
    decode = _best(lambda: [codec.decode(streams) for streams in coded])
    return {
        "weights": name,
        "codec": codec.name,
        "M weights": count / 1e6,
        "bit/w": sum(codec.parts(streams).total for streams in coded) / count,
        "encode": count / encode / 1e6,
        "encode from float": count / (encode + rounding) / 1e6,
        "decode": count / decode / 1e6,
    }


def _rounded(weight: torch.Tensor) -> torch.Tensor:
    return quantise(weight, absmax_scales(weight, "tensor"))


def _best(run: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
