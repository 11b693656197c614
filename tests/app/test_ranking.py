"""Which models are offered first, with which verdict."""

import itertools

import pytest

from app.ranking import Known, ranked
from app.surroundings import surroundings
from runtime.sources import catalogue
from runtime.sources.fit import fit
from runtime.sources.speed import CpuRates, GpuRates, tokens_per_s

GB, NOTHING = 10**9, Known()
DEFAULT = catalogue.default().name
CPU = {
    "memory": {"available_bytes": 22 * GB},
    "devices": [{"kind": "cpu", "int4_gb_s": 13.0, "int8_gb_s": 17.0}, {"kind": "cuda", "usable": False}],
    "disk": {"free_bytes": 80 * GB},
    "answering": "cpu",
}
LAPTOP = {
    "memory": {"available_bytes": 13 * GB, "pinnable_bytes": 12 * GB},
    "devices": [{"kind": "cpu"}, {"kind": "cuda:0", "free_bytes": 5_500_000_000, "memory_gb_s": 180.0}],
    "disk": {"free_bytes": 60 * GB},
    "answering": "cuda:0",
}


def offers(report, known=NOTHING):
    around = surroundings(report) if report else None
    return ranked(catalogue.load(), DEFAULT, known, around)


def names(found):
    return [offer.name for offer in found]


def by_name(found, name):
    return next(offer for offer in found if offer.name == name)


def test_what_a_report_says():
    found = surroundings(LAPTOP)
    assert (found.gpu, found.rates) == (True, GpuRates(180.0))
    assert (found.room.device, found.room.host, found.room.disk) == (5_500_000_000, 12 * GB, 60 * GB)
    found = surroundings(CPU)
    assert (found.gpu, found.rates) == (False, CpuRates(13.0, 17.0))
    assert (found.room.device, found.room.host) == (None, 22 * GB)


def test_before_speeds_are_measured_there_is_room_but_no_speed():
    found = surroundings({"memory": {"available_bytes": GB}, "devices": [{"kind": "cpu"}]})
    assert found.rates is None
    assert found.room.host == GB


def test_a_loaded_model_gives_way():
    held = {"memory": {"available_bytes": GB, "engine_bytes": (400 << 20) + 3 * GB}}
    assert surroundings(held).room.host == 4 * GB


@pytest.mark.parametrize("report", [{}, {"memory": "none"}, {"memory": {"total_bytes": 1}}])
def test_a_report_that_says_too_little_is_none(report):
    assert surroundings(report) is None


def test_a_gpu_whose_memory_is_unknown_gives_no_room():
    assert surroundings({**LAPTOP, "devices": [{"kind": "cuda:0"}]}) is None


def test_without_a_gpu_the_default_is_recommended_and_first():
    found = offers(CPU)
    assert names(found)[0] == DEFAULT
    assert [offer.name for offer in found if offer.recommended] == [DEFAULT]


def test_on_a_laptop_s_gpu_the_largest_that_fits_and_asks_for_no_token_is_recommended():
    found = offers(LAPTOP)
    first = found[0]
    assert first.recommended
    assert not first.entry.gated
    better = [
        o for o in found if o.fits and not o.entry.gated and o.entry.parameters > first.entry.parameters
    ]
    assert better == []
    assert first.name == "Qwen3-8B"


def test_where_little_fits_the_default_leads_and_the_rest_says_what_is_missing():
    tight = {**LAPTOP, "devices": [{"kind": "cuda:0", "free_bytes": 500_000_000, "memory_gb_s": 100.0}]}
    found = offers(tight)
    assert names(found)[0] == DEFAULT
    fitting = [offer.fits for offer in found]
    assert fitting == sorted(fitting, reverse=True)
    missing = [sum(lack.bytes for lack in offer.fit.lacks) for offer in found if not offer.fits]
    assert missing == sorted(missing)
    assert found[-1].verdict.startswith("lacks ")
    assert found[-1].verdict.endswith(" VRAM")


def test_fast_ones_stand_by_size_before_slow_ones_by_speed():
    rest = [offer for offer in offers(CPU)[1:] if offer.fits]
    fast = [offer for offer in rest if offer.comfortable]
    assert rest[: len(fast)] == fast
    assert fast
    for one, two in itertools.pairwise(fast):
        assert one.entry.parameters >= two.entry.parameters
    for one, two in itertools.pairwise(rest[len(fast) :]):
        assert one.tokens_per_s >= two.tokens_per_s


def test_figures_are_those_of_the_forecast():
    offer = by_name(offers(LAPTOP), "Llama-3.2-3B-Instruct")
    around = surroundings(LAPTOP)
    assert offer.fit == fit(offer.entry.shape, around.room, offer.entry.download_bytes)
    assert offer.tokens_per_s == tokens_per_s(offer.entry.shape, "awq4", around.rates)
    assert offer.verdict == "4-bit, lossless"


def test_three_bits_are_said_and_prepared():
    small = {**LAPTOP, "devices": [{"kind": "cuda:0", "free_bytes": 4 * GB, "memory_gb_s": 100.0}]}
    offer = by_name(offers(small), "Meta-Llama-3-8B-Instruct")
    assert (offer.verdict, offer.base, offer.fits) == ("3-bit", "int8x3", True)


def test_what_is_prepared_or_begun_stands_in_front():
    known = Known(ready=["mine", "Qwen3-0.6B"], begun=(("Qwen3-4B", "Qwen3-4B"), ("o--m", "o/m")))
    found = offers(CPU, known)
    assert {offer.name for offer in found[:2]} == {"Qwen3-4B", "o--m"}
    assert by_name(found, "o--m").source == "o/m"
    assert found[2].name == DEFAULT
    assert {offer.name for offer in found[3:5]} == {"mine", "Qwen3-0.6B"}
    assert len(names(found)) == len(set(names(found))) == len(catalogue.load()) + 2


def test_a_prepared_model_needs_no_disk_and_is_never_grey():
    full = {**CPU, "disk": {"free_bytes": 0}}
    assert not by_name(offers(full), DEFAULT).fits
    assert by_name(offers(full, Known(ready=[DEFAULT])), DEFAULT).fits


def test_without_a_report_the_default_leads_the_catalogue_in_its_order():
    found = offers(None)
    assert names(found) == [DEFAULT, *(e.name for e in catalogue.load() if e.name != DEFAULT)]
    assert all(offer.verdict == "" and offer.fits for offer in found)
