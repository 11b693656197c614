"""What a token takes before its first block and after its last one: embedding, output layer, sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from kernels.gpu.attention.cache import new_device_cache
from runtime.engine.gpu.step import DecodeStep, new_step_buffers
from runtime.model.spec import ModelSpec
from runtime.tuner.device_block import Call, copies_needed
from runtime.tuner.random_model import cloned, random_embedding, random_head, random_model
from runtime.tuner.replays import Replay

# A larger head is measured by a part of it.
_MOST_WEIGHTS = 1 << 27
# Each call takes one position.
_CONTEXT = 1 << 14


def ends_us(spec: ModelSpec, device: torch.device) -> float:
    """Microseconds a token, with a head that no cache holds."""
    rows = measured_rows(spec)
    calls = ends_calls(spec, device, rows)
    return Replay(calls).microseconds() / len(calls) * spec.vocab_size / rows


def ends_calls(spec: ModelSpec, device: torch.device, rows: int, copies: int | None = None) -> list[Call]:
    """Whole steps of models without blocks, and with so many tokens; each has a head of its own."""
    mine = replace(spec, vocab_size=rows, layers=())
    head, embedding = random_head(rows, spec.hidden, device), random_embedding(rows, spec.hidden, device)
    copies = copies or copies_needed(head.nbytes, fewest=1)
    heads = [head, *(cloned(head) for _ in range(1, copies))]
    models = [random_model(mine, _CONTEXT, (), {}, own, embedding) for own in heads]
    cache = new_device_cache(1, spec.n_kv_heads, 1, spec.head_dim, device)
    buffers = new_step_buffers(models[0])
    steps = [DecodeStep(model, cache, buffers, {}) for model in models]
    return [partial(step.run, ()) for step in steps]


def measured_rows(spec: ModelSpec) -> int:
    """Rows of the head that are run."""
    return min(spec.vocab_size, max(1, _MOST_WEIGHTS // spec.hidden))
