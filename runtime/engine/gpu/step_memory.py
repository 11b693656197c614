"""Device memory that a decode step takes beside weights and KV cache, for the plan of what fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.gpu.attention.scratch import new_attention_scratch
from kernels.gpu.dec.fetch import WORD_OUTPUTS
from kernels.gpu.sampling.choose import new_sampler_scratch
from kernels.gpu.sampling.state import new_sampler_state
from runtime.engine.gpu.footprint import FLOAT_BYTES, allocated
from runtime.engine.gpu.linears import new_kind_buffers
from runtime.layers.base import LINEAR_KINDS
from runtime.layers.device_linear import new_buffers
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape

# Of programs that share a head, on the largest devices; and of parts that rows are fetched in.
_MOST_SPLITS, _MOST_PARTS = 32, 16


def step_bytes(spec: ModelSpec, parts: int = _MOST_PARTS) -> int:
    """What kernels hand to each other when rows are fetched in `parts` parts: the buffers of
    `runtime.engine.gpu.step`, made where tensors have no memory.
    """
    nowhere, group = torch.device("meta"), spec.n_heads // spec.n_kv_heads
    held = (
        new_kind_buffers(spec, nowhere),
        new_buffers(spec.hidden, spec.vocab_size, nowhere),
        new_sampler_state(spec.vocab_size, nowhere),
        new_sampler_scratch(spec.vocab_size, nowhere),
        new_attention_scratch(spec.n_kv_heads, group, spec.head_dim, nowhere, splits=_MOST_SPLITS),
    )
    states = (FLOAT_BYTES * n for n in (spec.hidden, spec.q_size, spec.intermediate))
    rows = (-(-linear_shape(spec, kind)[0] // WORD_OUTPUTS) * WORD_OUTPUTS for kind in LINEAR_KINDS)
    fetched = (parts * FLOAT_BYTES * count for count in rows)
    return allocated(*states, *fetched, *(tensor.nbytes for tensor in _tensors(held)))


def _tensors(thing: Any) -> Iterator[Tensor]:
    """All tensors in dataclasses, mappings and tuples."""
    if isinstance(thing, Tensor):
        yield thing
    elif is_dataclass(thing):
        for field in fields(thing):
            yield from _tensors(getattr(thing, field.name))
    elif isinstance(thing, Mapping | tuple):
        for part in thing.values() if isinstance(thing, Mapping) else thing:
            yield from _tensors(part)
