"""Chained launches: on GPUs that can (compute capability 9 and up), a kernel starts while the one before it
still runs, brings what does not depend on it nearer, and waits for its results only then.

A chain is safe because every program of a chained kernel calls `follow`, before it writes and before it reads
anything that the chain changes: the kernel after it may start, but waits in its own `follow`.
https://docs.nvidia.com/cuda/cuda-c-programming-guide, programmatic dependent launch.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import cuda

from kernels.gpu.primitives import interpreting, launch

# Set to 0 to compare with launches one after the other.
VARIABLE = "DECDEC_CHAINED"
_CAPABILITY = (9, 0)


@cache
def chaining() -> bool:
    """Whether kernels of this process are chained."""
    if interpreting() or not torch.cuda.is_available() or os.environ.get(VARIABLE, "1") == "0":
        return False
    return torch.cuda.get_device_capability() >= _CAPABILITY


@triton.jit
def follow(CHAINED: tl.constexpr) -> None:
    """Let the next kernel start, and wait until all that the kernels before have written can be read."""
    if CHAINED:
        cuda.gdc_launch_dependents()
        cuda.gdc_wait()


@triton.jit
def prefetch(pointers: tl.tensor, ASM: tl.constexpr) -> None:
    """Bring the line of each address into the L2 cache; a hint that changes nothing else."""
    if ASM:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.u32 $0,0;",
            "=r,l",
            [pointers],
            dtype=tl.uint32,
            is_pure=False,
            pack=1,
        )


def launch_chained(
    kernel: Any, grid: tuple[int, ...], *args: Any, asm: bool | None = None, **options: Any
) -> None:
    """As `launch`, of a kernel with the constexpr argument CHAINED that begins with `follow`."""
    chained = chaining()
    if chained:
        options["launch_pdl"] = True
    launch(kernel, grid, *args, asm=asm, CHAINED=chained, **options)
