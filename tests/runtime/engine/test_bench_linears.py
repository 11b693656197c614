"""What counts as a call's time."""

from types import SimpleNamespace

import pytest

from runtime.engine import bench_linears
from runtime.engine.bench_linears import SPREAD, typical
from runtime.engine.step_timer import StepTimer
from runtime.layers.base import LINEAR_KINDS
from runtime.progress import JobContext
from runtime.protocol.events import KChunk
from runtime.tuner import tuning
from runtime.tuner.measurer import NO_PROGRAMS


def test_disturbed_calls_do_not_count():
    calm = [[10.0, 11.0]] * 16
    disturbed = [[10.0 + 8000.0 * (i % 3 > 0), 11.0 + 8000.0 * (i % 2)] for i in range(24)]
    assert typical(calm) == pytest.approx(10.5)
    assert typical(disturbed) == pytest.approx(10.5)


def test_a_few_undisturbed_calls_are_enough():
    steps = [[100.0 + j for j in range(30)] for _ in range(24)]
    for i in range(0, 24, 2):
        steps[i][i] = 10.0
    assert typical(steps) == pytest.approx(SPREAD * 10.0)


def test_a_single_lucky_call_does_not_count():
    assert typical([[1.0, 10.0]] + [[10.0, 10.0]] * 199) == pytest.approx(10.0)


class FakeEngine:
    """Every product takes 100 us; a correction 2 us, and 0.5 us for each of k_chunk."""

    def __init__(self):
        self.table, self.steps = KChunk(), 0

    def truncate(self, n):
        pass

    def prefill(self, tokens, check):
        check()

    def set_k_chunk(self, table):
        self.table = table

    def time_step(self, token, clock):
        self.steps += 1
        timer = StepTimer(clock)
        for kind in LINEAR_KINDS:
            timer.products[kind] = [100e-6] * 3
            timer.corrections[kind] = [(2 + 0.5 * getattr(self.table, kind)) * 1e-6] * 3
        timer.step_s = 1500e-6 if self.steps % 3 else 9e-3
        return timer


@pytest.fixture
def measurer(monkeypatch):
    loaded = SimpleNamespace(engine=FakeEngine())
    monkeypatch.setattr(bench_linears, "load_cpu_engine", lambda *args, **options: loaded)
    return bench_linears.StepMeasurer("m", "rtn4", JobContext.silent())


def test_a_correction_costs_what_it_takes_beyond_finding_nothing(measurer):
    assert measurer.base_us("o") == pytest.approx(100)
    assert measurer.corrected_us("o", NO_PROGRAMS, 8) == pytest.approx(104)
    assert measurer.corrected_us("o", NO_PROGRAMS, 0) == pytest.approx(100)
    assert measurer.launches("o") == (NO_PROGRAMS,)


def test_a_step_is_more_than_its_linears_and_disturbed_ones_do_not_count(measurer):
    assert measurer.block_us == pytest.approx(500)


def test_tables_are_measured_with_all_kinds_at_work(measurer):
    table = KChunk(qkv=8, o=0, gate_up=32, down=4)
    assert measurer.table_pct({}, table) == pytest.approx(100 * 0.5 * 44 / 400)


def test_no_table_is_measured_twice(measurer):
    engine = measurer._engine
    for _ in range(3):
        measurer.table_pct({}, KChunk(8, 8, 8, 8))
        measurer.corrected_us("down", NO_PROGRAMS, 8)
    assert engine.steps == 2 * (bench_linears.STEPS + bench_linears.WARM_STEPS)


def test_a_cpu_is_tuned_like_any_device(measurer):
    found = tuning.run(measurer)
    assert set(found.launches.values()) == {NO_PROGRAMS}
    assert [detent.measured_pct <= detent.target_pct for detent in found.detents] == [True] * 5
    assert found.detents[-1].measured_pct > 18.5


def test_what_is_too_dear_is_not_measured_on(measurer):
    """At 0.5 us a channel, 20 % of 400 us is spent at k_chunk 160: no step beyond 192 corrects all kinds."""
    for k in bench_linears.RUNGS:
        measurer.corrected_us("o", NO_PROGRAMS, k)
    tables = [table for table in measurer._steps if table.o > 192]
    assert tables
    assert all((table.qkv, table.gate_up, table.down) == (0, 0, 0) for table in tables)
    assert measurer.corrected_us("qkv", NO_PROGRAMS, 192) == pytest.approx(100 + 96)
