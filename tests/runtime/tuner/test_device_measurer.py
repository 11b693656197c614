"""The arithmetic between replays and the tuner: a device whose graphs take the time of a simulated one."""

from types import SimpleNamespace

import pytest

from runtime.layers.base import LINEAR_KINDS
from runtime.protocol.events import KChunk
from runtime.tuner import device_measurer, tuning
from runtime.tuner.device_measurer import DeviceMeasurer
from runtime.tuner.fetching import FetchShape
from runtime.tuner.search import DETENTS, at
from tests.runtime.tuner.simulated import BASE_US

SHAPES = {
    "qkv": FetchShape(6144, 4096, 4),
    "o": FetchShape(4096, 4096, 4),
    "gate_up": FetchShape(28672, 4096, 4),
    "down": FetchShape(4096, 14336, 4),
}
START_US = {"qkv": 1.1, "o": 1.2, "gate_up": 2.4, "down": 1.6}
ATTENTION_US, OUTSIDE_US = 8.0, 5.0
TOTAL_US = sum(BASE_US.values()) + ATTENTION_US + OUTSIDE_US
COPIES = 4


class Blocks:
    """Stands in for `DeviceBlock`: calls say what is corrected how, times come from a formula."""

    shapes, copies = SHAPES, COPIES

    def __init__(self):
        self.table = {}

    def start(self, table):
        self.table = dict(table)

    def calls(self, fetching, again=None):
        return [(self, dict(fetching), again)] * COPIES


def call_us(block, fetching, again):
    added = sum(fetch_us(kind, config, block.table.get(kind, 0)) for kind, config in fetching.items())
    return ATTENTION_US + sum(BASE_US.values()) + BASE_US.get(again, 0.0) + added


def fetch_us(kind, config, k):
    assert k, "a kind without channels has no fetch"
    link = k * SHAPES[kind].fetched_bytes(1) / 50e3
    return START_US[kind] + 0.01 * config.splits + max(0.0, link - 0.8 * BASE_US[kind])


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
    return DeviceMeasurer(Blocks(), 50.0, OUTSIDE_US)


def test_a_token_is_its_linears_and_the_rest(measurer):
    assert {kind: measurer.base_us(kind) for kind in LINEAR_KINDS} == pytest.approx(BASE_US)
    assert measurer.rest_us == pytest.approx(ATTENTION_US + OUTSIDE_US)
    assert measurer.total_us == pytest.approx(TOTAL_US)
    assert tuning.base_times(measurer).total == pytest.approx(TOTAL_US)


def test_linears_never_take_more_than_their_block(monkeypatch):
    """Where each is slower by itself than among the others."""
    monkeypatch.setattr(device_measurer, "Replay", FakeReplay)
    monkeypatch.setitem(BASE_US, "o", 40.0)
    monkeypatch.setattr(f"{__name__}.call_us", lambda block, fetching, again: 50.0 + BASE_US.get(again, 0.0))
    measurer = DeviceMeasurer(Blocks(), 50.0, OUTSIDE_US)
    assert sum(measurer.base_us(kind) for kind in LINEAR_KINDS) == pytest.approx(50.0)
    assert measurer.rest_us == pytest.approx(OUTSIDE_US)


@pytest.mark.parametrize("kind", LINEAR_KINDS)
def test_a_kind_alone_pays_its_start_and_its_fetch(measurer, kind):
    launch = measurer.launches(kind)[0]
    assert measurer.corrected_us(kind, launch, 0) == pytest.approx(BASE_US[kind])
    added = measurer.corrected_us(kind, launch, 1) - BASE_US[kind]
    assert added == pytest.approx(START_US[kind] + 0.01 * launch.splits)


def test_a_table_is_measured_with_its_kinds_alone_and_against_a_whole_token(measurer):
    launch = {kind: measurer.launches(kind)[0] for kind in LINEAR_KINDS}
    table = KChunk(qkv=8, o=0, gate_up=16, down=9)
    alone = sum(
        measurer.corrected_us(kind, launch[kind], getattr(table, kind)) - measurer.base_us(kind)
        for kind in LINEAR_KINDS
    )
    assert measurer.table_pct(launch, table) == pytest.approx(100 * alone / TOTAL_US)
    assert measurer.table_pct(launch, KChunk()) == 0


def test_a_graph_is_captured_once_for_each_set_of_kinds_and_ways(measurer):
    for _ in range(2):
        for kind in LINEAR_KINDS:
            for launch in measurer.launches(kind):
                measurer.corrected_us(kind, launch, 4)
                measurer.corrected_us(kind, launch, 8)
    ways = sum(len(measurer.launches(kind)) for kind in LINEAR_KINDS)
    assert len(measurer._graphs) == ways
    launch = {kind: measurer.launches(kind)[0] for kind in LINEAR_KINDS}
    for k in (1, 2):
        measurer.table_pct(launch, KChunk(qkv=k, down=k))
        measurer.table_pct(launch, KChunk(qkv=k))
    assert len(measurer._graphs) == ways + 1


def test_a_whole_tuning_keeps_its_promise(measurer):
    found = tuning.run(measurer)
    assert set(found.launches) == set(LINEAR_KINDS)
    for detent in DETENTS:
        assert measurer.table_pct(found.launches, at(found.path, detent)) <= detent
    assert 0 < sum(getattr(at(found.path, 2.5), kind) > 0 for kind in LINEAR_KINDS) < 4


def test_without_a_gpu_a_sentence_says_so(monkeypatch):
    from runtime.errors import DecdecError
    from runtime.tuner import gpu_tuning

    none = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setattr(gpu_tuning, "torch", none)
    with pytest.raises(DecdecError) as raised:
        gpu_tuning.usable_gpu(0)
    assert "torch finds none" in raised.value.sentence
