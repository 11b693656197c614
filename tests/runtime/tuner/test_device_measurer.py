"""The arithmetic between replays and the tuner: a device whose graphs take the time of a simulated one."""

from types import SimpleNamespace

import pytest

from runtime.layers.base import LINEAR_KINDS
from runtime.protocol.events import KChunk
from runtime.tuner import device_measurer, tuning
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.search import DETENTS, at
from tests.runtime.tuner.simulated import BASE_US

SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate_up": (28672, 4096), "down": (4096, 14336)}
READY_US = {"qkv": 0.1, "o": 0.2, "gate_up": 0.4, "down": 0.1}
COPIES = 4


class Block:
    """Stands in for `DeviceBlock`: calls are (kind, fetching) pairs, times come from a formula."""

    def __init__(self):
        self.shapes, self.copies, self.table = SHAPES, COPIES, dict.fromkeys(LINEAR_KINDS, 0)
        self.weights = [{kind: kind for kind in LINEAR_KINDS}]

    def set_table(self, table):
        self.table.update(table)

    def calls(self, fetching, kinds=LINEAR_KINDS, adding=False):
        return [(self, kind, fetching.get(kind)) for kind in kinds] * COPIES


def call_us(block, kind, config):
    base = BASE_US[kind]
    if config is None:
        return base
    k = block.table[kind]
    n_out, n_in = SHAPES[kind]
    link = k * n_in / 1024 * n_out / 2 / 50e3
    fetched = 0.3 + max(0.0, link - 0.8 * base) if k else 0.0
    return base + READY_US[kind] + 0.01 * config.splits + fetched


class FakeReplay:
    def __init__(self, calls):
        self.calls = calls

    def microseconds(self, replays=15):
        return sum(call_us(*call) for call in self.calls)

    def added_to(self, reference, replays=11):
        base = reference.microseconds()
        return self.microseconds() - base, base


@pytest.fixture
def measurer(monkeypatch):
    monkeypatch.setattr(device_measurer, "Replay", FakeReplay)
    monkeypatch.setattr(device_measurer, "product_warps", lambda kind: 1 if kind == "gate_up" else 4)
    return DeviceMeasurer(Block(), 50.0)


def test_the_base_is_shared_out_as_the_linears_take(measurer):
    assert {kind: measurer.base_us(kind) for kind in LINEAR_KINDS} == pytest.approx(BASE_US)
    assert measurer.total_us == pytest.approx(sum(BASE_US.values()))


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_a_linear_pays_its_fetch_and_a_quarter_of_being_ready(measurer, kind):
    launch = measurer.launches(kind)[0]
    place = {other: measurer.launches(other)[0] for other in LINEAR_KINDS}
    ready = sum(READY_US[other] + 0.01 * measurer.fetching(place)[other].splits for other in LINEAR_KINDS)
    assert measurer.corrected_us(kind, launch, 0) == pytest.approx(BASE_US[kind] + ready / 4)
    measurer.block.set_table(dict.fromkeys(LINEAR_KINDS, 7))
    added = measurer.corrected_us(kind, launch, 1) - measurer.corrected_us(kind, launch, 0)
    assert added == pytest.approx(0.3)


def test_single_costs_add_up_to_the_joint_slowdown(measurer):
    launch = {kind: measurer.launches(kind)[0] for kind in LINEAR_KINDS}
    table = KChunk(qkv=8, o=0, gate_up=16, down=9)
    alone = sum(
        measurer.corrected_us(kind, launch[kind], getattr(table, kind)) - measurer.base_us(kind)
        for kind in LINEAR_KINDS
    )
    assert measurer.table_pct(launch, table) == pytest.approx(100 * alone / measurer.total_us)
    assert measurer.table_pct(launch, KChunk()) == 0


def test_every_launch_is_captured_in_few_graphs(measurer):
    for kind in LINEAR_KINDS:
        for launch in measurer.launches(kind):
            measurer.corrected_us(kind, launch, 4)
    assert len(measurer._graphs) == max(len(measurer.launches(kind)) for kind in LINEAR_KINDS)


def test_a_whole_tuning_keeps_its_promise(measurer):
    found = tuning.run(measurer)
    assert set(found.launches) == set(LINEAR_KINDS)
    for detent in DETENTS:
        assert measurer.table_pct(found.launches, at(found.path, detent)) <= detent


def test_without_a_gpu_a_sentence_says_so(monkeypatch):
    from runtime.errors import DecdecError
    from runtime.tuner import gpu_tuning

    none = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setattr(gpu_tuning, "torch", none)
    with pytest.raises(DecdecError) as raised:
        gpu_tuning.usable_gpu(0)
    assert "torch finds none" in raised.value.sentence
