"""Blocks as a step runs them: what tables hide, whether the tuner's promise holds, same bits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kernels.gpu.dec import reference
from runtime.bench.dec_linears import LinearBlock
from runtime.bench.dec_pairs import NOMINAL_GB_S, describe
from runtime.bench.shapes import LLAMA
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.layers.device_linear import DeviceLinear
from runtime.model.spec import ModelSpec
from runtime.progress import JobContext
from runtime.protocol.events import KChunk
from runtime.tuner import gpu_tuning, tuning
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.measurer import Launches
from runtime.tuner.random_weights import makers
from runtime.tuner.search import DETENTS, equal_gain
from runtime.tuner.tuning import Tuned
from runtime.tuner.verify import Detent

Row = dict[str, Any]
REPLAYS = 1000
SPEC = ModelSpec.from_config(LLAMA.config(4096))
_DETERMINISM_PCT = 10.0
# A single slowdown is aimed at closely: what was measured stands beside it.
_CLOSE_PCT = 0.15


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
    measurer = gpu_tuning.make_measurer(SPEC, base, device, JobContext.silent())
    tuned = tuning.run(measurer)
    return TunedBlock(base, 1.0, measurer, tuned, time.monotonic() - started)


def tune_block(
    base: str, ratio: float, device: torch.device, link_gb_s: float, by_bytes: bool = False
) -> TunedBlock:
    """The tuner on whole steps, or where a `ratio` stands for another device on the linears alone.

    `by_bytes`: a table is worth the bytes it fetches, as efficiency counts it.
    """
    started = time.monotonic()
    if ratio == 1.0:
        measurer = gpu_tuning.new_measurer(SPEC, base, device, link_gb_s)
    else:
        measurer = DeviceMeasurer(LinearBlock(LLAMA.linears, makers(base, device), device, ratio), link_gb_s)

    def fetched(kind: LinearKind, k_chunk: int) -> float:
        return measurer.shapes[kind].fetched_bytes(k_chunk) / 1e6

    worth = fetched if by_bytes else equal_gain
    times = tuning.base_times(measurer)
    curves = tuning.measured_curves(measurer, times)
    tuned = tuning.settle(measurer, times, curves, worth)
    wanted = DETENTS if by_bytes else ()
    single = [tuning.settle(measurer, times, curves, worth, (one,), lambda _: _CLOSE_PCT) for one in wanted]
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
    """Replays whose results differ in any bit from the first; and the error of the correction."""
    table = next(d.k_chunk for d in block.tuned.detents if d.target_pct == _DETERMINISM_PCT)
    blocks, ks = block.measurer.block, by_kind(table)
    graph = block.measurer.graph(corrected_launches(block.tuned, table))
    blocks.start(ks)
    graph.run()
    first = [result.clone() for result in blocks.results]
    differing = torch.zeros((), dtype=torch.int64, device=first[0].device)
    for _ in range(replays):
        blocks.start(ks)
        graph.run()
        same = [_equal_bits(a, b) for a, b in zip(first, blocks.results, strict=True)]
        differing += ~torch.stack(same).all()
    row = {"base": block.base, "base rows": f"x{block.ratio:g}", "k_chunk": str(table), "replays": replays}
    return {**row, "differing": int(differing), "error of the correction": correction_error(block, table)}


def by_kind(table: KChunk) -> dict[LinearKind, int]:
    """A table's k_chunk."""
    return {kind: getattr(table, kind) for kind in LINEAR_KINDS}


def corrected_launches(tuned: Tuned, table: KChunk) -> Launches:
    """Those of the kinds that a table corrects."""
    return {kind: launch for kind, launch in tuned.launches.items() if getattr(table, kind)}


def _equal_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.eq(a.view(torch.int32), b.view(torch.int32)).all()


def correction_error(block: TunedBlock, table: KChunk) -> float:
    """Largest relative error, over the kinds, of what was fetched, against float64 over the list."""
    fetching = block.measurer.fetching(corrected_launches(block.tuned, table))
    block.measurer.block.start(by_kind(table))
    linears = block.measurer.block.linears(fetching)[0]
    return max((_error(linears[kind], getattr(table, kind)) for kind in fetching), default=0.0)


def _error(linear: DeviceLinear, k_chunk: int) -> float:
    fetch = linear.fetch
    assert fetch is not None
    x = torch.randn(1, linear.n_in, device=fetch.partial.device)
    base = linear.multiply(x, corrected=False).double().clone()
    corrected = linear.decode(x).double()
    listed = fetch.selection.listed(k_chunk)
    chosen = fetch.selection.channels[:listed].long().cpu()
    values = (fetch.selection.values[:listed] * fetch.selection.common).cpu()
    exact = reference.correction(fetch.residual.words, fetch.residual.scale.cpu(), chosen, values)
    found = (corrected - base)[0, : exact.numel()].cpu()
    # A float32 result holds a small correction only to the precision of the sum.
    return float((found - exact).norm() / corrected.norm().cpu())
