"""Inputs of chosen blocks on a text and on the calibration prompts, under the source's own weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from runtime.evaluate.bases import Setting
from runtime.evaluate.inputs import BlockInputs, BlockSource, Calibration
from runtime.evaluate.runner import Runner
from runtime.progress import JobContext

# The paper looks at blocks 8, 16 and 24 of 32.
SHARES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Seen:
    """A block with what its linears see of the calibration prompts, and of one window of `text`."""

    source: BlockSource
    text: BlockInputs


def chosen_blocks(count: int) -> list[int]:
    """Three blocks of a decoder, counted from 0."""
    return sorted({min(count - 1, int(count * share)) for share in SHARES})


def seen(setting: Setting, runner: Runner, window: torch.Tensor, ctx: JobContext) -> Iterator[Seen]:
    """The chosen blocks, one after the other, on a window int64 [T]; progress in blocks."""
    chosen = chosen_blocks(len(setting.model.spec.layers))
    text, calibration = Calibration(runner, [window]), Calibration(runner, setting.texts())
    for index in range(chosen[-1] + 1):
        ctx.progress("activations", index, chosen[-1] + 1, "blocks")
        block, source = (
            runner.block(index),
            BlockSource(index, setting.model.parts(index), None, runner.device),
        )
        block.linears = source.reference()
        saw, calibrated = text.step(block, ctx.check), calibration.step(block, ctx.check)
        if index in chosen:
            yield Seen(replace(source, inputs=calibrated), saw)
    ctx.progress("activations", chosen[-1] + 1, chosen[-1] + 1, "blocks")
