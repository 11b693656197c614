"""All kernels of a tuning compiled at once, by processes that share triton's cache: one after the other they
take longer than all of the measuring.

`python -m runtime.tuner.compiling CASES I/N` compiles every Nth variant from the Ith on; CASES are JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec
import torch

from kernels.gpu.dec.fetch import FetchConfig
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.tuner.device_block import Call, DeviceBlock
from runtime.tuner.fetching import launches
from runtime.tuner.linear_inputs import LinearInputs
from runtime.tuner.random_weights import makers
from runtime.tuner.step_ends import ends_calls, measured_rows

MOST_PROCESSES = 12
# What a process takes of the device's memory.
_PROCESS_BYTES = 1 << 30
_POLL_S = 0.1
# A head of so many rows is compiled for as one of any larger vocabulary.
_ENOUGH_ROWS = 24_576


class Case(msgspec.Struct, frozen=True):
    """A model and a base, by name, to compile for."""

    base: str
    spec: ModelSpec
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
    done = 0
    for number, variant in enumerate(call for case in cases for call in variants(case, device)):
        if number % parts == part:
            _run(variant)
            done += 1
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return done


def variants(case: Case, device: torch.device) -> Iterator[Call]:
    """First single linears, so that no two processes compile the same; then blocks, for what is left."""
    block = _block(case, device)
    yield from linear_variants(case, block, device)
    yield from block_variants(case, block)


def linear_variants(case: Case, block: DeviceBlock, device: torch.device) -> Iterator[Call]:
    """Every linear without a fetch and with every way of fetching, and the ends of a step."""
    inputs = LinearInputs({kind: linear_shape(case.spec, kind) for kind in LINEAR_KINDS}, device)
    plain = block.linears({})
    for kind in LINEAR_KINDS:
        for config in (None, *_ways(case, block, kind)):
            bound = plain if config is None else block.linears({kind: config})
            for linears in bound:
                yield partial(inputs.run, kind, linears[kind], config is not None)
    yield partial(_run_ends, case.spec, device)


def block_variants(case: Case, block: DeviceBlock) -> Iterator[Call]:
    """Blocks corrected in one kind, and in those whose kernels depend on each other."""
    ways = {kind: _ways(case, block, kind) for kind in LINEAR_KINDS}
    yield from block.calls({})
    for kind, configs in ways.items():
        for config in configs:
            yield from block.calls({kind: config})
    for config in ways["down"]:
        yield from block.calls({"gate_up": ways["gate_up"][0], "down": config})


def _block(case: Case, device: torch.device) -> DeviceBlock:
    makes = makers(case.base, device)
    block = DeviceBlock(case.spec, makes, device, copies=len(makes), pinned=False)
    block.start({})
    return block


def _ways(case: Case, block: DeviceBlock, kind: LinearKind) -> list[FetchConfig]:
    return list(launches(block.shapes[kind], case.link_gb_s).values())


def _run_ends(spec: ModelSpec, device: torch.device) -> None:
    rows = min(measured_rows(spec), _ENOUGH_ROWS)
    for call in ends_calls(spec, device, rows, copies=1):
        call()


def _run(variant: Call) -> None:
    """One that fails does so again, with its reason, when it is measured."""
    try:
        variant()
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
