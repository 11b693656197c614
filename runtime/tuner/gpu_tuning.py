"""Tuning a prepared model on a GPU: the measurer of its shapes, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from runtime import store
from runtime.errors import DecdecError
from runtime.int8x import Int8xReader
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.tuner import compiling
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.link import link_gb_s
from runtime.tuner.random_weights import makers
from runtime.tuner.replays import warm_up

_STEPS = ("link", "kernels", "graphs")


def model_measurer(model: str, base: str, index: int, ctx: JobContext) -> DeviceMeasurer:
    """Measures a prepared model's linears; random weights of its shapes are enough for that.

    Raises DecdecError when the model is not here or the device cannot be used; progress "measure".
    """
    record = store.find(model)
    spec = ModelSpec.from_config(Int8xReader(record.path).config)
    device = usable_gpu(index)
    shapes = {kind: linear_shape(spec, kind) for kind in LINEAR_KINDS}
    with torch.cuda.device(device):
        return make_measurer(shapes, base, device, ctx)


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
