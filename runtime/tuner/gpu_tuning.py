"""Tuning of a model's shapes on a GPU: kernels compiled, link measured, graphs captured, tables found."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from runtime.engine.gpu.linears import Fetching
from runtime.engine.slider import TunedPath
from runtime.errors import DecdecError
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.tuner import compiling, tuning
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.link import link_gb_s
from runtime.tuner.random_weights import makers
from runtime.tuner.replays import warm_up
from runtime.tuner.step_ends import ends_us

_STEPS = ("link", "kernels", "graphs")


@dataclass(frozen=True, slots=True)
class ModelTables:
    """What an engine takes from tuning, and the seconds that this took."""

    path: TunedPath
    fetching: Fetching
    seconds: float


def tune_model(spec: ModelSpec, base: str, device: torch.device, link_gb_s: float) -> ModelTables:
    """Tables for a model of any weights, `base` by name; kernels are best compiled before."""
    started = time.monotonic()
    measurer = new_measurer(spec, base, device, link_gb_s)
    tuned = tuning.run(measurer)
    fetching = measurer.fetching(tuned.launches)
    return ModelTables(TunedPath(tuned.path), fetching, time.monotonic() - started)


def make_measurer(spec: ModelSpec, base: str, device: torch.device, ctx: JobContext) -> DeviceMeasurer:
    """Compile, measure the link, and capture; on the current device. Progress "measure"."""
    ctx.progress("measure", 0, len(_STEPS), "steps", "kernels")
    compiling.compile_all([compiling.Case(base, spec)], device)
    ctx.progress("measure", 1, len(_STEPS), "steps", "link to host memory")
    warm_up()
    link = link_gb_s(device)
    ctx.progress("measure", 2, len(_STEPS), "steps", "graphs")
    measurer = new_measurer(spec, base, device, link)
    ctx.progress("measure", len(_STEPS), len(_STEPS), "steps")
    return measurer


def new_measurer(spec: ModelSpec, base: str, device: torch.device, link_gb_s: float) -> DeviceMeasurer:
    """Blocks of random weights, and what a token takes beside them."""
    outside = ends_us(spec, device) / len(spec.layers)
    return DeviceMeasurer(DeviceBlock(spec, makers(base, device), device), link_gb_s, outside)


def usable_gpu(index: int) -> torch.device:
    """The CUDA device of this number; DecdecError where there is none."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        found = f"torch finds {count} of them" if count else "torch finds none"
        raise DecdecError(
            f"The GPU number {index} cannot be tuned", found, "decdec-chat doctor shows devices and why"
        )
    return torch.device("cuda", index)
