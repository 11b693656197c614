"""The measurer of linears on a GPU: kernels compiled, link measured, graphs captured."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from runtime.errors import DecdecError
from runtime.layers.base import LinearKind
from runtime.progress import JobContext
from runtime.tuner import compiling
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.link import link_gb_s
from runtime.tuner.random_weights import makers
from runtime.tuner.replays import warm_up

_STEPS = ("link", "kernels", "graphs")


def make_measurer(
    shapes: Mapping[LinearKind, tuple[int, int]], base: str, device: torch.device, ctx: JobContext
) -> DeviceMeasurer:
    """Compile, measure the link, and capture; on the current device."""
    ctx.progress("measure", 0, len(_STEPS), "steps", "kernels")
    compiling.compile_all([compiling.Case(base, dict(shapes))], device)
    ctx.progress("measure", 1, len(_STEPS), "steps", "link to host memory")
    warm_up()
    link = link_gb_s(device)
    ctx.progress("measure", 2, len(_STEPS), "steps", "graphs")
    measurer = DeviceMeasurer(DeviceBlock(shapes, makers(base, device), device), link)
    ctx.progress("measure", len(_STEPS), len(_STEPS), "steps")
    return measurer


def usable_gpu(index: int) -> torch.device:
    """The CUDA device of this number; DecdecError where there is none."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        found = f"torch finds {count} of them" if count else "torch finds none"
        raise DecdecError(
            f"The GPU number {index} cannot be tuned", found, "decdec-chat doctor shows devices and why"
        )
    return torch.device("cuda", index)
