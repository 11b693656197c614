"""Tuning a prepared model on a GPU: from its name to the measurer of its shapes."""

from __future__ import annotations

import torch

from runtime import store
from runtime.int8x import Int8xReader
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.gpu_tuning import make_measurer, usable_gpu


def model_measurer(model: str, base: str, index: int, ctx: JobContext) -> DeviceMeasurer:
    """Measures a prepared model's steps; random weights of its shapes are enough for that.

    Raises DecdecError when the model is not here or the device cannot be used; progress "measure".
    """
    record = store.find(model)
    spec = ModelSpec.from_config(Int8xReader(record.path).config)
    device = usable_gpu(index)
    with torch.cuda.device(device):
        return make_measurer(spec, base, device, ctx)
