"""The INT8-X paper's baseline: one token through a whole Llama in bf16 by transformers, random weights."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from runtime.bench.gpu_timing import graph_microseconds
from runtime.bench.shapes import ModelShape

PROMPT = 16
STEPS = 20
# Long enough for all replays, should each one lengthen it.
CACHE = 256
_POSITIONS = 2048


def build_model(shape: ModelShape, device: torch.device | str) -> Any:
    """LlamaForCausalLM with random bf16 weights; ImportError without transformers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**shape.config(_POSITIONS))
    with _default_dtype(torch.bfloat16), torch.device(device), torch.no_grad():
        return LlamaForCausalLM(config).eval()


@torch.no_grad()
def eager_milliseconds(model: Any, shape: ModelShape) -> float:
    """Median of one token's forward pass with a dynamic cache, launches included."""
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    model(input_ids=random_tokens(model, shape, PROMPT), past_key_values=cache, use_cache=True)
    token = random_tokens(model, shape, 1)
    timer = step_timer(model)
    step = lambda: model(input_ids=token, past_key_values=cache, use_cache=True)  # noqa: E731
    return statistics.median(timer(step) for _ in range(STEPS))


@torch.no_grad()
def captured_milliseconds(model: Any, shape: ModelShape) -> float:
    """The same with a static cache, replayed from one CUDA graph."""
    from transformers import StaticCache

    cache = StaticCache(config=model.config, max_cache_len=CACHE)
    model(input_ids=random_tokens(model, shape, PROMPT), past_key_values=cache, use_cache=True)
    token = random_tokens(model, shape, 1)
    where = torch.tensor([[PROMPT]], device=model.device)

    def step() -> None:
        model(input_ids=token, past_key_values=cache, position_ids=where, use_cache=True)

    return graph_microseconds([step]) / 1e3


def model_rows(shape: ModelShape, device: torch.device | str = "cuda") -> Iterator[dict[str, Any]]:
    """Eager, then captured; rows like those of `one_token`, but the weights of both tables count too."""
    model = build_model(shape, device)
    weight_bytes = sum(parameter.nbytes for parameter in model.parameters())
    row = {"model": shape.name, "weight_bytes": weight_bytes}
    yield {**row, "format": "bf16, transformers, eager", "ms": eager_milliseconds(model, shape)}
    if torch.device(device).type == "cuda":
        yield {**row, "format": "bf16, transformers, one graph", "ms": captured_milliseconds(model, shape)}


def random_tokens(model: Any, shape: ModelShape, count: int) -> torch.Tensor:
    """int64 [1, count] on the model's device."""
    generator = torch.Generator().manual_seed(count)
    return torch.randint(shape.vocabulary, (1, count), generator=generator).to(model.device)


def step_timer(model: Any) -> Callable[[Callable[[], object]], float]:
    """Milliseconds of a call, launches included, on the clock of the model's device."""
    return _event_milliseconds if model.device.type == "cuda" else _host_milliseconds


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _event_milliseconds(call: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def _host_milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - started)
