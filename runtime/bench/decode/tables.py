"""Tables for the slider of models with random weights, tuned in the same run as they are measured."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch

from runtime.bench.decode.stepping import Tables
from runtime.bench.shapes import ModelShape
from runtime.engine.slider import TunedPath
from runtime.tuner import tuning
from runtime.tuner.compiling import Case, compile_all
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.random_weights import makers


def compile_for_tuning(
    wanted: Iterable[tuple[ModelShape, str]], device: torch.device, link_gb_s: float, limit_s: float
) -> float:
    """Compile what `tune` measures for shapes and bases; seconds it took. The rest is compiled when used."""
    cases = [Case(base, shape.linears, link_gb_s=link_gb_s) for shape, base in wanted]
    return compile_all(cases, device, limit_s)


def tune(shape: ModelShape, base: str, device: torch.device, link_gb_s: float) -> Tables:
    """What the tuner finds for a base on this device; kernels are best compiled before."""
    started = time.monotonic()
    measurer = DeviceMeasurer(DeviceBlock(shape.linears, makers(base, device), device), link_gb_s)
    tuned = tuning.run(measurer)
    fetching = measurer.fetching(tuned.launches)
    return Tables(TunedPath(tuned.path), fetching, time.monotonic() - started)
