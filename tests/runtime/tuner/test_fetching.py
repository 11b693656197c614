"""Which fetches are tried, and where their staircases have steps."""

from itertools import pairwise

import pytest

from kernels.gpu.dec.fetch import FetchConfig
from runtime.tuner.fetching import LATENCY_US, SEGMENT_BYTES, FetchShape, launches, rungs

# Llama-3-8B; products of four warps.
SHAPES = {
    "qkv": FetchShape(6144, 4096, 4),
    "o": FetchShape(4096, 4096, 4),
    "gate_up": FetchShape(28672, 4096, 4),
    "down": FetchShape(4096, 14336, 4),
}
H200, LAPTOP = 50.0, 13.0


def test_bytes_of_a_channel_are_those_of_four_bit_rows():
    assert [shape.row_bytes for shape in SHAPES.values()] == [3072, 2048, 14336, 2048]
    assert SHAPES["down"].fetched_bytes(8) == 8 * 14 * 2048
    assert FetchShape(100, 1536, 4).listed(8) == 12


def test_the_ways_found_best_by_hand_are_among_those_tried():
    tried = {kind: set(launches(shape, H200).values()) for kind, shape in SHAPES.items()}
    assert FetchConfig(8, 1, True) in tried["gate_up"]
    assert FetchConfig(8, 2, True) in tried["gate_up"]
    assert any(config.splits in (4, 5) for config in tried["qkv"])
    assert any(config.splits in (6, 7) for config in tried["down"])
    assert all(4 <= len(ways) <= 5 for ways in tried.values())


@pytest.mark.parametrize("link", [H200, LAPTOP, 3.0])
@pytest.mark.parametrize("kind", SHAPES)
def test_about_what_the_link_needs_is_in_flight(kind, link):
    shape, needed = SHAPES[kind], link * 1e3 * LATENCY_US
    one_row = shape.segments * SEGMENT_BYTES
    flying = [one_row * config.rows * config.splits for config in launches(shape, link).values()]
    assert max(flying) <= 2.3 * needed + one_row
    assert min(flying) <= needed + one_row


def test_programs_are_those_that_the_product_starts():
    for shape in SHAPES.values():
        for launch, config in launches(shape, H200).items():
            assert launch.programs == -(-shape.segments // 4) * config.splits
            assert (launch.rows, launch.splits) == (config.rows, config.splits)


def test_every_linear_has_a_way_to_fetch():
    for n_out, n_in, warps in ((8, 128, 16), (576, 576, 8), (960, 576, 8), (131072, 4096, 1)):
        assert launches(FetchShape(n_out, n_in, warps), H200)
        assert launches(FetchShape(n_out, n_in, warps), 0.5)


@pytest.mark.parametrize("kind", SHAPES)
def test_rungs_end_rounds_and_stay_within_reach(kind):
    shape = SHAPES[kind]
    for config in launches(shape, H200).values():
        found = rungs(shape, config, 300.0, H200)
        assert list(found) == sorted(set(found))
        assert found[0] >= 1
        assert len(found) <= 80
        assert shape.fetched_bytes(found[-1]) <= 300.0 * H200 * 1e3
        whole = config.rows * config.splits
        first = int(whole * 1024 / shape.n_in)
        assert first in found
        assert shape.listed(first) <= whole < shape.listed(first + 1)
        steps = 1.6 * whole * 1024 / shape.n_in + 1
        assert all(b <= max(1.15 * a, a + steps) for a, b in pairwise(found))


def test_a_round_of_gate_up_is_four_channels():
    found = rungs(SHAPES["gate_up"], FetchConfig(8, 2, True), 30.0, H200)
    assert found[:7] == (1, 2, 4, 6, 8, 10, 12)


def test_nothing_is_tried_that_the_link_cannot_bring():
    assert rungs(SHAPES["gate_up"], FetchConfig(16, 2), 0.5, H200) == ()
