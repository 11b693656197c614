"""How fast weights under nested bitmaps are decoded and multiplied.

The decoders of the INT8-X paper's table 3.4, and the fused product beside cuBLAS. All figures are medians.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels.gpu.ladder import decode_bit_loop, decode_vectorised
from kernels.int8x import PAPER_LEVELS, BitmapStreams, check_streams, decode, encode

if TYPE_CHECKING:
    pass

Call = Callable[[], object]

# The loop over bits needs a second or two for a million weights; a part of them tells as much.
BIT_LOOP_WEIGHTS = 100_000


def synthetic_weights(n_out: int, n_in: int, seed: int = 0) -> torch.Tensor:
    """int8 weights that compress as a real model's: normal rows of log-normal spread around 4.9 steps.

    Their entropy is 4.62 bits a weight, where the INT8-X paper has 4.66 for MiniCPM5-1B.
    """
    generator = torch.Generator().manual_seed(seed)
    spread = torch.exp(torch.randn(n_out, 1, generator=generator) * 0.55 + math.log(4.9))
    values = torch.randn(n_out, n_in, generator=generator) * spread
    return values.round().clamp(-127, 127).to(torch.int8)


def decoder_ladder(
    q: torch.Tensor, levels: Sequence[int] = PAPER_LEVELS, repeats: int = 5
) -> dict[str, float]:
    """Seconds a million weights of q (int8, in host memory) take in each decoder.

    On a GPU v8 to v10 run there. Without one v9 and v10 are left out, and the compiled CPU decoder is timed.
    """
    streams = encode(q, tuple(levels))
    check_streams(streams)
    short = encode(q.reshape(-1)[:BIT_LOOP_WEIGHTS], tuple(levels))
    loop = _host_seconds(lambda: decode_bit_loop(short), 1)
    figures = {"v7 Python bit loop": loop / short.n * 1e6}
    figures["compiled, CPU"] = _host_seconds(lambda: decode(streams), repeats) / streams.n * 1e6
    steps = _gpu_decoders(streams) if torch.cuda.is_available() else _cpu_decoders(streams)
    seconds = _event_seconds if torch.cuda.is_available() else _host_seconds
    return figures | {name: seconds(call, repeats) / streams.n * 1e6 for name, call in steps.items()}


def decode_rates(
    q: torch.Tensor, levels: Sequence[int] = PAPER_LEVELS, repeats: int = 20
) -> dict[str, float]:
    """GB/s of the fused decoder on a GPU, bytes read plus bytes written: to int8 and to bfloat16.

    `copy` is a device copy of as many bytes as the bfloat16 result, counted the same way.
    """
    from kernels.gpu import bitmap_decode
    from kernels.gpu.bitmap_matrix import load_bitmap

    matrix = load_bitmap(encode(q, tuple(levels)), (q.shape[0], q.shape[1]), torch.ones(1), "cuda")
    wide = torch.empty(q.shape, dtype=torch.bfloat16, device="cuda")
    calls: dict[str, tuple[Call, int]] = {
        "int8": (lambda: bitmap_decode.bitmap_decode_int8(matrix), matrix.streams.nbytes + q.numel()),
        "bf16": (lambda: bitmap_decode.bitmap_decode_bf16(matrix), matrix.streams.nbytes + 2 * q.numel()),
        "copy": (wide.clone, 4 * q.numel()),
    }
    return {name: moved / _event_seconds(call, repeats) / 1e9 for name, (call, moved) in calls.items()}


def _cpu_decoders(streams: BitmapStreams) -> dict[str, Call]:
    return {"v8 vectorised torch": lambda: decode_vectorised(streams)}


def _gpu_decoders(streams: BitmapStreams) -> dict[str, Call]:
    from kernels.gpu.bitmap_decode import bitmap_decode_int8
    from kernels.gpu.bitmap_matrix import load_bitmap
    from kernels.gpu.ladder_triton import decode_outside_sums

    matrix = load_bitmap(streams, (1, streams.n), torch.ones(1), "cuda")
    return {
        "v8 vectorised torch": lambda: decode_vectorised(matrix.streams),
        "v9 Triton, sums by torch": lambda: decode_outside_sums(matrix.streams),
        "v10 Triton, fused": lambda: bitmap_decode_int8(matrix),
    }


def _host_seconds(call: Call, repeats: int) -> float:
    def once() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    once()
    return median(once() for _ in range(repeats))


def _event_seconds(call: Call, repeats: int) -> float:
    def once() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    once()
    return median(once() for _ in range(repeats))
