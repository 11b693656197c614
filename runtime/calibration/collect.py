"""Listening to the inputs of a decoder's linears while it reads the calibration prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch

from runtime.calibration.statistics import InputStatistics
from runtime.layers.base import LINEAR_KINDS, Linear, LinearKind
from runtime.model.decoder import Decoder
from runtime.progress import JobContext

BlockStatistics = dict[LinearKind, InputStatistics]

# The first token of a text is an attention sink: its inputs are many times larger than any other's, and no
# token is ever decoded there. It would stretch the upper buckets until all other values fall into one.
SINK_TOKENS = 1


class Recorder:
    """A linear that notes its inputs and passes them on; sees one text per `prefill`."""

    def __init__(self, linear: Linear) -> None:
        self.linear, self.statistics = linear, InputStatistics(linear.n_in)
        self.n_in, self.n_out = linear.n_in, linear.n_out

    def prefill(self, x: torch.Tensor) -> torch.Tensor:
        """[tokens, n_in] -> [tokens, n_out]."""
        self.statistics.add(x[SINK_TOKENS:])
        return self.linear.prefill(x)

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        """[1, n_in] -> [1, n_out], not noted."""
        return self.linear.decode(x)

    def bytes_in_memory(self) -> int:
        """Bytes of the linear."""
        return self.linear.bytes_in_memory()


@contextmanager
def record(linears: dict[LinearKind, Linear]) -> Iterator[BlockStatistics]:
    """While open, the block's linears note their inputs; the statistics stay valid afterwards."""
    originals = dict(linears)
    recorders = {kind: Recorder(originals[kind]) for kind in LINEAR_KINDS}
    linears.update(recorders)
    try:
        yield {kind: recorder.statistics for kind, recorder in recorders.items()}
    finally:
        linears.update(originals)


def calibrate(decoder: Decoder, batches: Sequence[torch.Tensor], ctx: JobContext) -> list[BlockStatistics]:
    """Run every batch int64 [T] through the decoder; gives each block's statistics. Progress in tokens."""
    total, done = sum(len(batch) for batch in batches), 0
    with ExitStack() as stack, torch.inference_mode():
        statistics = [stack.enter_context(record(block.linears)) for block in decoder.blocks]
        for batch in batches:
            ctx.progress("calibrate", done, total, "tokens")
            decoder.hidden(batch)
            done += len(batch)
        ctx.progress("calibrate", done, total, "tokens")
    return statistics


def bucket_profile(
    decoder: Decoder, batches: Sequence[torch.Tensor], ctx: JobContext
) -> list[dict[LinearKind, torch.Tensor]]:
    """The profile of every linear, ready for `runtime.lowbit.write_profile`."""
    return [
        {kind: statistics.profile for kind, statistics in block.items()}
        for block in calibrate(decoder, batches, ctx)
    ]
