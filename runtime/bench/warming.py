"""Compiling many kernels at once: processes that share triton's cache, each with a part of the work."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from runtime.bench.mixture import paper_mixture
from runtime.bench.shapes import ModelShape
from runtime.bench.token_formats import BF16, Bitmap, DecodedBitmap, Format, Input, Planes
from runtime.layers.base import LinearKind

Task = Callable[[], object]
# Rows enough for every form of a group; kernels do not depend on them.
ROWS = 256
_POLL_S = 0.5


def tasks(shapes: Sequence[ModelShape], formats: Sequence[Planes], device: str) -> Iterator[Task]:
    """One product each, on few rows, with the columns and the input of every linear."""
    for shape in shapes:
        for kind, (n_out, n_in) in shape.linears.items():
            single = (
                replace(form, launches=(launch,)) for form in formats for launch in form.launches_for(n_out)
            )
            for form in (*single, Bitmap(), DecodedBitmap()):
                yield lambda form=form, kind=kind, n_in=n_in: _run(form, kind, n_in, device)  # type: ignore[misc]


def run_part(all_tasks: Sequence[Task], part: int, parts: int) -> None:
    """Every `parts`-th task from `part` on; one that fails does so again, with its reason, when measured."""
    for task in all_tasks[part::parts]:
        try:
            task()
        except Exception as error:
            print(f"warming: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def warm(module: str, parts: int, limit_s: float, options: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """`python -m module --warm i/parts` for every part at once; those that outlast the limit are ended."""
    started = time.monotonic()
    command = [sys.executable, "-m", module, *options, "--warm"]
    running = [subprocess.Popen([*command, f"{part}/{parts}"]) for part in range(parts)]
    while any(p.poll() is None for p in running) and time.monotonic() - started < limit_s:
        time.sleep(_POLL_S)
    late = [process for process in running if process.poll() is None]
    for process in late:
        process.kill()
        process.wait()
    yield {"processes": parts, "ended late": len(late), "seconds": time.monotonic() - started}


def _run(form: Format, kind: LinearKind, n_in: int, device: str) -> None:
    q = paper_mixture().draw(ROWS, n_in, device=device)
    x = torch.randn(n_in, device=device).to(BF16)
    given = {"qkv": Input(x, norm=x), "gate_up": Input(x, norm=x), "down": Input(x, up=x), "o": Input(x)}[
        kind
    ]
    form.multiply(form.pack(q, torch.ones(1, device=device)), given)
    if q.is_cuda:
        torch.cuda.synchronize()
