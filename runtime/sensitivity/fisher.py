"""Sensitivities by one pass forward and one back, with one block's weights in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod

import torch
from llvmlite import binding

from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.layers.dense import Dense
from runtime.model.cache import SinglePass
from runtime.model.decoder import Block, rms_norm
from runtime.model.source import SourceModel
from runtime.model.spec import ModelSpec
from runtime.model.weights import linear_shape
from runtime.progress import JobContext
from runtime.sensitivity.linear import Sensitivity, Tap

BlockSensitivity = dict[LinearKind, Sensitivity]
# Takes a block's number and F of every weight of its linears, float32 [n_out, n_in].
Each = Callable[[int, dict[LinearKind, torch.Tensor]], None]

# Every block's inputs are kept for the way back.
STATE_BYTES = 1 << 30
LOGITS_AT_ONCE = 1 << 24
# Of the labels drawn from the model's own predictions: the same model gives the same sensitivities.
SEED = 0


def measure(
    model: SourceModel, batches: Sequence[torch.Tensor], ctx: JobContext, each: Each | None = None
) -> list[BlockSensitivity]:
    """Sensitivity of every linear of every block, from texts int64 [T]; progress in blocks, twice through.

    Of the texts, only as many are used as keep the states of all blocks within STATE_BYTES.
    `each` is given F of every weight, block by block from the last to the first: a block's size in float32
    more memory, and half as much arithmetic again.
    """
    used = _within_memory(model, batches)
    with torch.inference_mode(False):
        states = _forward(model, used, ctx)
        head = _head(model)
        gradients = [_head_gradient(model, head, h, number) for number, h in enumerate(states[-1])]
        del head
        found: list[BlockSensitivity] = []
        count = len(model.spec.layers)
        for index in reversed(range(count)):
            ctx.progress("sensitivity", 2 * count - 1 - index, 2 * count, "blocks")
            taps = _backward(model, index, states.pop(index), gradients, each is not None)
            found.append({kind: tap.sensitivity() for kind, tap in taps.items()})
            if each is not None:
                each(index, _every_weight(taps))
    ctx.progress("sensitivity", 2 * count, 2 * count, "blocks")
    return found[::-1]


@cache
def compute_type() -> torch.dtype:
    """bfloat16 where the processor multiplies it (five times as fast there), else float32.

    Sensitivities are sums over thousands of tokens: rounding of single products does not show in them.
    """
    features = binding.get_host_cpu_features()
    return torch.bfloat16 if features.get("avx512bf16") or features.get("amx-bf16") else torch.float32


def _head(model: SourceModel) -> Linear:
    """The model's head in the type that is computed in."""
    head = model.decoder.head
    return Dense(head.weight.to(compute_type())) if isinstance(head, Dense) else head


def _within_memory(model: SourceModel, batches: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    room = STATE_BYTES // (4 * model.spec.hidden * len(model.spec.layers))
    used: list[torch.Tensor] = []
    for batch in batches:
        if used and room < len(batch):
            break
        used.append(batch)
        room -= len(batch)
    return used


def _forward(
    model: SourceModel, batches: Sequence[torch.Tensor], ctx: JobContext
) -> list[list[torch.Tensor]]:
    """States before each block, and after the last: [blocks + 1][texts] of float32 [T, hidden]."""
    states = [[model.embed(batch) for batch in batches]]
    count = len(model.spec.layers)
    for index in range(count):
        ctx.progress("sensitivity", index, 2 * count, "blocks")
        block = _block(model, index, Dense)
        with torch.no_grad():
            states.append([_run(model, block, h) for h in states[-1]])
    return states


def _backward(
    model: SourceModel,
    index: int,
    states: Sequence[torch.Tensor],
    gradients: list[torch.Tensor],
    each: bool,
) -> dict[LinearKind, Tap]:
    """Replace the gradients behind a block by those before it; gives its linears, which have noted them."""
    block = _block(model, index, partial(Tap, each=each))
    for number, h in enumerate(states):
        start = h.clone().requires_grad_()
        with torch.enable_grad():
            end = _run(model, block, start)
        end.backward(gradients[number])
        assert start.grad is not None
        gradients[number] = start.grad
    taps = {kind: block.linears[kind] for kind in LINEAR_KINDS}
    return {kind: tap for kind, tap in taps.items() if isinstance(tap, Tap)}


def _every_weight(taps: dict[LinearKind, Tap]) -> dict[LinearKind, torch.Tensor]:
    found = {kind: tap.every_weight() for kind, tap in taps.items()}
    return {kind: weights for kind, weights in found.items() if weights is not None}


def _head_gradient(model: SourceModel, head: Linear, h: torch.Tensor, number: int) -> torch.Tensor:
    """Gradient of the log likelihood of drawn labels by the last states [T, hidden].

    One label per token; where the head costs more than all blocks, one per so many tokens, weighing as much.
    """
    generator = torch.Generator().manual_seed(SEED + number)
    rows = max(1, LOGITS_AT_ONCE // model.spec.vocab_size)
    apart = _labels_apart(model.spec)
    gradient = torch.zeros_like(h)
    parts = [_label_gradient(model, head, part, generator) for part in h[::apart].split(rows)]
    gradient[::apart] = torch.cat(parts) * apart**0.5
    return gradient


def _labels_apart(spec: ModelSpec) -> int:
    linears = sum(prod(linear_shape(spec, kind)) for kind in LINEAR_KINDS) * len(spec.layers)
    return max(1, round(spec.vocab_size * spec.hidden / linears))


def _label_gradient(
    model: SourceModel, head: Linear, h: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    start = h.clone().requires_grad_()
    with torch.enable_grad():
        logits = head.prefill(rms_norm(start, model.decoder.norm, model.spec.norm_eps)).float()
        log_p = logits.log_softmax(-1)
        labels = torch.multinomial(log_p.detach().exp(), 1, generator=generator)
        log_p.gather(1, labels).sum().backward()
    assert start.grad is not None
    return start.grad


def _block(model: SourceModel, index: int, layer: Callable[[torch.Tensor], Linear]) -> Block:
    block, dtype = model.bare_block(index), compute_type()
    for kind, parts in model.parts(index).items():
        block.linears[kind] = layer(torch.cat(parts).to(dtype))
    return block


def _run(model: SourceModel, block: Block, h: torch.Tensor) -> torch.Tensor:
    return model.decoder.run_block(h, 0, block, SinglePass())
