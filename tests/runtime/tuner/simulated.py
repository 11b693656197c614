"""A device that is only arithmetic: staircases over k, idle programs, linears that disturb one another."""

import itertools
import math

from runtime.layers.base import LINEAR_KINDS
from runtime.tuner.measurer import Launch

# Llama-3-8B in 4 bits on an H200, roughly: base microseconds, residual bytes of one k_chunk, chunks.
BASE_US = {"qkv": 7.3, "o": 5.8, "gate_up": 18.0, "down": 12.6}
K_BYTES = {"qkv": 12_288, "o": 8_192, "gate_up": 57_344, "down": 28_672}
SEGMENTS = {"qkv": 24, "o": 16, "gate_up": 112, "down": 16}
CHUNKS = {"qkv": 4, "o": 4, "gate_up": 4, "down": 14}
BATCH = 8


class SimulatedDevice:
    """ratio: how many times longer the base takes than on an H200, with the same link.

    interaction: share that every further linear at work adds to the sum; the joint measurement shows it.
    start_us: what correcting at all costs a kind. rest_us: of a step, per block, beside its linears.
    """

    joint_trials = 40

    def __init__(
        self,
        ratio=1.0,
        interaction=0.0,
        link_gb_s=50.0,
        rungs=None,
        splits=(1, 2, 4),
        start_us=0.0,
        rest_us=0.0,
    ):
        self.ratio, self.interaction, self.link = ratio, interaction, link_gb_s * 1e3
        self.splits, self._rungs = splits, rungs
        self.start_us, self.rest_us = start_us, rest_us
        self.measured = []

    def base_us(self, kind):
        return BASE_US[kind] * self.ratio

    def launches(self, kind):
        return [Launch(SEGMENTS[kind] * split, BATCH, split) for split in self.splits]

    def rungs(self, kind, launch):
        ends = [BATCH * launch.splits * step // CHUNKS[kind] for step in range(1, 25)]
        return self._rungs or sorted({k for k in ends if 0 < k <= 128})

    def corrected_us(self, kind, launch, k):
        return self.base_us(kind) + self.added(kind, launch.programs, k)

    def added(self, kind, n_tb, k):
        """More programs disturb the base, fewer need more batches one after the other."""
        if k == 0:
            return 0.0
        idle = self.start_us + n_tb * 0.0004
        batches = math.ceil(k * CHUNKS[kind] / (BATCH * n_tb / SEGMENTS[kind]))
        fetch = max(3.0 + 1.1 * batches, 3.0 + k * K_BYTES[kind] / self.link)
        hidden = 0.85 * self.base_us(kind)
        return idle + 0.2 + max(0.0, fetch - hidden) + 0.002 * n_tb * min(k, 1)

    def table_pct(self, launches, table):
        if table.total == 0:
            return 0.0
        self.measured.append(table)
        ks = {kind: getattr(table, kind) for kind in LINEAR_KINDS}
        added = sum(self.added(kind, launches[kind].programs, k) for kind, k in ks.items())
        working = sum(k > 0 for k in ks.values())
        return 100 * added * (1 + self.interaction * (working - 1)) / self.total

    @property
    def total(self):
        return sum(map(self.base_us, LINEAR_KINDS)) + self.rest_us


def every_assignment(device):
    """All choices of fetch programs."""
    for numbers in itertools.product(*(device.launches(kind) for kind in LINEAR_KINDS)):
        yield dict(zip(LINEAR_KINDS, numbers, strict=True))


def best_worth(device, launches, pct, worth):
    """By trying every table with these fetch programs."""
    rungs = [(0, *device.rungs(kind, launches[kind])) for kind in LINEAR_KINDS]
    best = 0.0
    for ks in itertools.product(*rungs):
        table = dict(zip(LINEAR_KINDS, ks, strict=True))
        if not any(ks):
            continue
        spent = sum(device.added(kind, launches[kind].programs, k) for kind, k in table.items())
        if 100 * spent <= pct * device.total + 1e-9:
            best = max(best, sum(worth(kind, k) for kind, k in table.items()))
    return best
