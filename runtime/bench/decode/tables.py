"""Tables for the slider of models with random weights, tuned in the same run as they are measured."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from runtime.bench.decode.stepping import Tables
from runtime.bench.shapes import ModelShape
from runtime.model.spec import ModelSpec
from runtime.tuner.compiling import Case, compile_all
from runtime.tuner.gpu_tuning import tune_model

# More than tuning fills.
_CONTEXT = 4096


def compile_for_tuning(
    wanted: Iterable[tuple[ModelShape, str]], device: torch.device, link_gb_s: float, limit_s: float
) -> float:
    """Compile what `tune` measures for shapes and bases; seconds it took. The rest is compiled when used."""
    cases = [Case(base, _spec(shape), link_gb_s) for shape, base in wanted]
    return compile_all(cases, device, limit_s)


def tune(shape: ModelShape, base: str, device: torch.device, link_gb_s: float) -> Tables:
    """What the tuner finds for a base on this device; kernels are best compiled before."""
    found = tune_model(_spec(shape), base, device, link_gb_s)
    return Tables(found.path, found.fetching, found.seconds)


def _spec(shape: ModelShape) -> ModelSpec:
    return ModelSpec.from_config(shape.config(_CONTEXT))
