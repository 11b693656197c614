"""Rows of the GPU's benchmark from made-up times, the picture, and the sentence where there is no GPU."""

import pytest
import torch

from runtime.bench import dec_blocks, dec_gpu_plots, dec_jobs
from runtime.bench.dec_blocks import TunedBlock
from runtime.bench.dec_pairs import Pair, _pair_row
from runtime.bench.run_dec_gpu import NOTES, Measurements
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.tuner import tuning
from runtime.tuner.fetching import FetchShape
from runtime.tuner.measurer import NO_PROGRAMS, Launch
from runtime.tuner.search import DETENTS
from tests.runtime.tuner.simulated import SimulatedDevice

GATE_UP = FetchShape(28672, 4096, 4)
FEW, MANY = Launch(28, 8, 1), Launch(56, 8, 2)


def pair():
    """18 us; 56 programs are free up to 8, 28 up to 4."""
    fast = {1: 0.3, 4: 0.4, 8: 0.44, 12: 3.2, 16: 5.0}
    slow = {1: 0.19, 4: 0.2, 8: 3.9}
    return Pair(GATE_UP, 18.0, {FEW: slow, MANY: fast})


def test_the_best_of_a_pair_is_the_largest_k_of_any_launch():
    assert pair().best(2.5) == (8, MANY)
    assert pair().best(1.5) == (4, FEW)
    assert pair().best(0.5) == (0, NO_PROGRAMS)
    assert pair().best(20.0) == (12, MANY)


def test_efficiency_is_bytes_over_what_50_gb_s_bring_in_the_base_time():
    """57,344 bytes for each k_chunk of gate_up, as the paper's 4-bit rows have."""
    assert pair().efficiency(8) == pytest.approx(8 * 57_344 / (18.0 * 50_000))
    row = _pair_row("gate_up", 1.0, pair())
    assert row["k <= 2.5 %"] == "8 (n_tb 56: 8x2)"
    assert row["efficiency <= 2.5 %"] == pytest.approx(0.5097, abs=1e-4)
    assert row["start %"] == pytest.approx(100 * 0.19 / 18)
    assert row["most GB/s"] == pytest.approx(16 * 57.344 / 23.0)


class Measured(SimulatedDevice):
    """With the sizes that a device's measurer knows."""

    def __init__(self):
        super().__init__(1.0, 0.2)
        self.total_us = self.total
        self.shapes = {
            "qkv": FetchShape(6144, 4096, 4),
            "o": FetchShape(4096, 4096, 4),
            "gate_up": GATE_UP,
            "down": FetchShape(4096, 14336, 4),
        }


@pytest.fixture
def block():
    device = Measured()
    base = tuning.base_times(device)
    curves = tuning.measured_curves(device, base)
    single = tuple(tuning.settle(device, base, curves, targets=(target,)) for target in DETENTS)
    return TunedBlock("awq4", 1.0, device, tuning.run(device), 12.0, single)


def test_rows_of_a_block(block):
    rows = list(dec_blocks.efficiency_rows(block))
    assert [row["slowdown <="] for row in rows] == ["2.5 %", "5 %", "10 %", "20 %"]
    detent = block.single[-1].detents[-1]
    fetched = sum(
        getattr(detent.k_chunk, kind) * bytes_
        for kind, bytes_ in {"qkv": 12_288, "o": 8_192, "gate_up": 57_344, "down": 28_672}.items()
    )
    assert rows[-1]["efficiency"] == pytest.approx(fetched / (block.measurer.total * 50e3))
    for row in dec_blocks.promise_rows(block):
        assert row["kept"]
        assert row["measured again %"] == pytest.approx(row["measured %"], abs=1e-3)
        assert row["tuner s"] == 12.0


def test_the_picture_has_a_line_for_every_block(block, tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    lines = []
    plot = Axes.plot
    monkeypatch.setattr(
        Axes, "plot", lambda self, *a, **k: lines.append(k.get("label")) or plot(self, *a, **k)
    )
    rows = list(dec_blocks.efficiency_rows(block))
    other = [{**row, "base rows": "x2.7"} for row in rows]
    dec_gpu_plots.draw_efficiency([*rows, *other], tmp_path / "e.svg")
    assert lines == ["awq4, base rows x1", "awq4, base rows x2.7"]
    assert (tmp_path / "e.svg").read_text().startswith("<?xml")


def test_every_section_has_a_note_or_needs_none(monkeypatch, tmp_path):
    class Names:
        folder, rows = tmp_path, {}
        asked = []  # noqa: RUF012

        def run(self, name, section):
            self.asked.append(name)

    begun = []
    Measurements(Names(), torch.device("cpu"), begun.append).all()
    assert begun == Names.asked
    without = [name for name in Names.asked if not name.startswith(tuple(NOTES))]
    assert without == ["link", "compile", "compile linears"]
    assert Names.asked[0] == "tuner"
    assert {"blocks awq4 x1", "blocks awq4 x2.7", "blocks awq4 x6.7", "blocks awq3 x1"} <= set(Names.asked)


def test_without_a_gpu_the_job_says_one_sentence():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(DecdecError) as raised:
        dec_jobs.kernels({}, JobContext.silent())
    assert "no NVIDIA GPU" in raised.value.sentence
