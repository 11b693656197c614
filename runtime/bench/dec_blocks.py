"""Four linears of a block in one graph: what tables hide, whether the tuner's promise holds, same bits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kernels.gpu.dec import reference
from runtime.bench.dec_pairs import NOMINAL_GB_S, describe
from runtime.bench.shapes import LLAMA
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.progress import JobContext
from runtime.protocol.events import KChunk
from runtime.tuner import gpu_tuning, tuning
from runtime.tuner.device_block import DeviceBlock
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.random_weights import makers
from runtime.tuner.replays import Replay
from runtime.tuner.search import DETENTS, equal_gain
from runtime.tuner.tuning import Tuned
from runtime.tuner.verify import Detent

Row = dict[str, Any]
REPLAYS = 1000
_DETERMINISM_PCT = 5.0
# A single slowdown is aimed at closely: what was measured stands beside it.
_CLOSE_PCT = 0.15
_STEP_REPLAYS = 21


@dataclass(frozen=True, slots=True)
class TunedBlock:
    """A tuned block and what it was tuned with; seconds: of the tuning, kernels compiled before or within.

    single: tuned for one slowdown at a time.
    """

    base: str
    ratio: float
    measurer: DeviceMeasurer
    tuned: Tuned
    seconds: float
    single: tuple[Tuned, ...] = ()

    def table(self, detent: Detent) -> Row:
        """The columns that every row about a detent begins with."""
        table = {kind: getattr(detent.k_chunk, kind) for kind in LINEAR_KINDS}
        names = ", ".join(f"{kind} {k}" for kind, k in table.items())
        head = {"base": self.base, "base rows": f"x{self.ratio:g}", "base us": self.measurer.total_us}
        return {**head, "slowdown <=": f"{detent.target_pct:g} %", "k_chunk": names}

    def efficiency(self, table: KChunk) -> float:
        """Bytes fetched over what the link could have brought in the base's time."""
        fetched = sum(self.measurer.shapes[kind].fetched_bytes(getattr(table, kind)) for kind in LINEAR_KINDS)
        return fetched / (self.measurer.total_us * NOMINAL_GB_S * 1e3)


def fresh_tuning(base: str, device: torch.device) -> TunedBlock:
    """What `tune` does for Llama-3-8B's shapes, kernels compiled and the link measured within."""
    started = time.monotonic()
    measurer = gpu_tuning.make_measurer(LLAMA.linears, base, device, JobContext.silent())
    tuned = tuning.run(measurer)
    return TunedBlock(base, 1.0, measurer, tuned, time.monotonic() - started)


def tune_block(
    base: str, ratio: float, device: torch.device, link_gb_s: float, by_bytes: bool = False
) -> TunedBlock:
    """The tuner on a block; `by_bytes`: a table is worth the bytes it fetches, as efficiency counts it."""
    started = time.monotonic()
    measurer = DeviceMeasurer(DeviceBlock(LLAMA.linears, makers(base, device), device, ratio), link_gb_s)

    def fetched(kind: LinearKind, k_chunk: int) -> float:
        return measurer.shapes[kind].fetched_bytes(k_chunk) / 1e6

    worth = fetched if by_bytes else equal_gain
    base_us = {kind: measurer.base_us(kind) for kind in LINEAR_KINDS}
    curves = tuning.measured_curves(measurer, base_us)
    tuned = tuning.settle(measurer, base_us, curves, worth)
    wanted = DETENTS if by_bytes else ()
    single = [tuning.settle(measurer, base_us, curves, worth, (one,), lambda _: _CLOSE_PCT) for one in wanted]
    return TunedBlock(base, ratio, measurer, tuned, time.monotonic() - started, tuple(single))


def efficiency_rows(block: TunedBlock) -> Iterator[Row]:
    """How much of the link's time is hidden: tuned for one slowdown, and by one choice for all of them."""
    for tuned, detent in zip(block.single, block.tuned.detents[1:], strict=True):
        alone = tuned.detents[-1]
        yield {
            **block.table(alone),
            "fetch": ", ".join(f"{kind} {describe(launch)}" for kind, launch in tuned.launches.items()),
            "measured %": alone.measured_pct,
            "efficiency": block.efficiency(alone.k_chunk),
            "one for all": block.efficiency(detent.k_chunk),
            "one for all, measured %": detent.measured_pct,
        }


def promise_rows(block: TunedBlock) -> Iterator[Row]:
    """Predicted from single linears, measured together while tuning, and measured together again."""
    for detent in block.tuned.detents[1:]:
        again = block.measurer.table_pct(block.tuned.launches, detent.k_chunk)
        row = {**block.table(detent), "predicted %": detent.predicted_pct, "measured %": detent.measured_pct}
        yield {**row, "measured again %": again, "kept": again <= detent.target_pct, "tuner s": block.seconds}


def same_bits(block: TunedBlock, replays: int = REPLAYS) -> Row:
    """Replays whose results differ in any bit from the first, sums added; and the error of the correction."""
    table = next(d.k_chunk for d in block.tuned.detents if d.target_pct == _DETERMINISM_PCT)
    device_block = block.measurer.block
    device_block.set_table({kind: getattr(table, kind) for kind in LINEAR_KINDS})
    graph = Replay(device_block.calls(block.measurer.fetching(block.tuned.launches), adding=True))
    outs = [device_block.buffers(kind).out for kind in LINEAR_KINDS]
    graph.run()
    first = [out.clone() for out in outs]
    differing = torch.zeros(len(outs), dtype=torch.int64, device=outs[0].device)
    for _ in range(replays):
        for out in outs:
            out.fill_(torch.nan)
        graph.run()
        same = [_equal_bits(a, b) for a, b in zip(first, outs, strict=True)]
        differing += ~torch.stack(same)
    row = {"base": block.base, "base rows": f"x{block.ratio:g}", "k_chunk": str(table), "replays": replays}
    names = ", ".join(f"{kind} {int(n)}" for kind, n in zip(LINEAR_KINDS, differing, strict=True))
    return {**row, "differing": names, "error of the correction": correction_error(block, table)}


def _equal_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.eq(a.view(torch.int32), b.view(torch.int32)).all()


def correction_error(block: TunedBlock, table: KChunk) -> float:
    """Largest relative error, over the kinds, of what was fetched, against float64 over the list."""
    linears = block.measurer.block.linears(block.measurer.fetching(block.tuned.launches))[0]
    errors = [0.0]
    for kind, linear in linears.items():
        k, fetch, source = getattr(table, kind), linear.fetch, block.measurer.block.sources[kind]
        if fetch is None or k == 0:
            continue
        base = linear.multiply(source.x, source.prologue, corrected=False).double().clone()
        corrected = linear.decode(source.x, source.prologue).double()
        listed = fetch.selection.listed(k)
        chosen = fetch.selection.channels[:listed].long().cpu()
        values = (fetch.selection.values[:listed] * fetch.selection.common).cpu()
        exact = reference.correction(source.residual.words, source.residual.scale.cpu(), chosen, values)
        found = (corrected - base)[0, : exact.numel()].cpu()
        # A float32 result holds a small correction only to the precision of the sum.
        errors.append(float((found - exact).norm() / corrected.norm().cpu()))
    return max(errors)


def step_rows(block: TunedBlock) -> Iterator[Row]:
    """The tables where results are used as in a decode step: sums and gate included on both sides."""
    device_block, copies = block.measurer.block, block.measurer.block.copies
    base = Replay(device_block.step_calls({}))
    graph = Replay(device_block.step_calls(block.measurer.fetching(block.tuned.launches)))
    for detent in block.tuned.detents[1:]:
        device_block.set_table({kind: getattr(detent.k_chunk, kind) for kind in LINEAR_KINDS})
        added, base_us = graph.added_to(base, _STEP_REPLAYS)
        row = {**block.table(detent), "measured %": detent.measured_pct, "step's base us": base_us / copies}
        yield {**row, "added us": added / copies, "of the step %": 100 * added / base_us}
