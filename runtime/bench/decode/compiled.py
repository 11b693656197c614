"""transformers under torch.compile(mode="reduce-overhead") with a static cache, in a process of its own:
`python -m runtime.bench.decode.compiled MODEL`. Compiling takes minutes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch

from runtime.bench.decode.children import child_json
from runtime.bench.eager_model import CACHE, PROMPT, STEPS, build_model, random_tokens, step_timer
from runtime.bench.shapes import BY_NAME, ModelShape
from runtime.bench.table import Row

MODULE = "runtime.bench.decode.compiled"
NAME = "bf16, transformers, compiled"
# The first call compiles, the second and third record the graphs.
_WARM = 5


def compiled_rows(shape: ModelShape, limit_s: float) -> Iterator[Row]:
    """One row: times, or why there are none."""
    row = {"model": shape.name, "format": NAME}
    try:
        yield {**row, **child_json(MODULE, (shape.name,), limit_s)}
    except RuntimeError as error:
        yield {**row, "why not": str(error)}


@torch.no_grad()
def compiled_milliseconds(model: Any, shape: ModelShape, **options: Any) -> Row:
    """Median of one token's forward pass, and the seconds before the first; `options` of torch.compile."""
    from transformers import StaticCache

    cache = StaticCache(config=model.config, max_cache_len=CACHE)
    model(input_ids=random_tokens(model, shape, PROMPT), past_key_values=cache, use_cache=True)
    token = random_tokens(model, shape, 1)
    where = torch.tensor([[PROMPT]], device=model.device)
    forward = torch.compile(model.forward, **options)

    def step() -> None:
        forward(input_ids=token, past_key_values=cache, position_ids=where, use_cache=True)

    started = time.monotonic()
    for _ in range(_WARM):
        step()
    seconds = time.monotonic() - started
    timer = step_timer(model)
    return {"ms": statistics.median(timer(step) for _ in range(STEPS)), "compiling s": seconds}


def main() -> None:
    """A child: the model's name on the command line, figures as JSON in the last line of stdout."""
    shape = BY_NAME[sys.argv[1]]
    print(json.dumps(compiled_milliseconds(build_model(shape, "cuda"), shape, mode="reduce-overhead")))


if __name__ == "__main__":
    main()
