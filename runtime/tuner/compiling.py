"""All kernels of a block compiled at once, by processes that share triton's cache: one after the other they
take longer than all of the measuring.

`python -m runtime.tuner.compiling CASE I/N` compiles every Nth variant from the Ith on; CASE is JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import msgspec
import torch

from kernels.gpu.dec.fetch import FetchConfig
from runtime.layers.base import LinearKind
from runtime.layers.device_products import product_warps
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.fetching import FetchShape, launches
from runtime.tuner.random_weights import makers

MOST_PROCESSES = 12
# What a process takes of the device's memory.
_PROCESS_BYTES = 1 << 30
_POLL_S = 0.1


Variant = tuple[DeviceBlock, dict[LinearKind, FetchConfig]]


class Case(msgspec.Struct, frozen=True):
    """A block to compile for: base by name, (n_out, n_in) by kind, rows of products over their outputs."""

    base: str
    shapes: dict[LinearKind, tuple[int, int]]
    ratio: float = 1.0
    link_gb_s: float = 50.0


def compile_all(cases: Sequence[Case], device: torch.device, limit_s: float = 240.0) -> float:
    """Seconds it took; what is not done by `limit_s` is compiled when it is first used."""
    started = time.monotonic()
    free, _ = torch.cuda.mem_get_info(device)
    parts = max(1, min(MOST_PROCESSES, os.cpu_count() or 1, int(free // _PROCESS_BYTES)))
    text = msgspec.json.encode(list(cases)).decode()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": _visible(device)}
    command = [sys.executable, "-m", "runtime.tuner.compiling", text]
    running = [subprocess.Popen([*command, f"{part}/{parts}"], env=environment) for part in range(parts)]
    while any(process.poll() is None for process in running) and time.monotonic() - started < limit_s:
        time.sleep(_POLL_S)
    for process in running:
        process.kill()
        process.wait()
    return time.monotonic() - started


def run_part(cases: Sequence[Case], part: int, parts: int, device: torch.device) -> int:
    """Run this part's variants once; how many they were."""
    variants = enumerate(variant for case in cases for variant in _variants(case, device))
    done = 0
    for number, variant in variants:
        if number % parts == part:
            _run(*variant)
            done += 1
    torch.cuda.synchronize(device)
    return done


def _variants(
    case: Case, device: torch.device
) -> Iterator[tuple[DeviceBlock, dict[LinearKind, FetchConfig]]]:
    """Every linear without a fetch and with every way of fetching."""
    makes = makers(case.base, device)
    for kind, shape in case.shapes.items():
        block = DeviceBlock({kind: shape}, makes, device, case.ratio, copies=len(makes), pinned=False)
        yield block, {}
        fetch_shape = FetchShape(*shape, product_warps(block.weights[0][kind]))
        for config in launches(fetch_shape, case.link_gb_s).values():
            yield block, {kind: config}


def _run(block: DeviceBlock, fetching: dict[LinearKind, FetchConfig]) -> None:
    """One that fails does so again, with its reason, when it is measured."""
    try:
        for call in block.calls(fetching, adding=True):
            call()
    except Exception as error:
        print(f"compiling: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _visible(device: torch.device) -> str:
    """CUDA_VISIBLE_DEVICES under which a child's first device is this one."""
    index = device.index or 0
    listed = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return listed[index] if index < len(listed) else str(index)


def main() -> None:
    """A child: see the module."""
    cases = msgspec.json.decode(sys.argv[1], type=list[Case])
    part, parts = (int(number) for number in sys.argv[2].split("/"))
    run_part(cases, part, parts, torch.device("cuda"))


if __name__ == "__main__":
    main()
