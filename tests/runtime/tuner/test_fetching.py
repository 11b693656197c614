"""Which fetches are tried, and where their staircases have steps."""

from itertools import pairwise

import pytest

from kernels.gpu.dec.fetch import FetchConfig
from runtime.tuner.fetching import SEGMENT_BYTES, FetchShape, launches, rungs

# Llama-3-8B; gate_up's product has programs of one warp, the others of four.
SHAPES = {
    "qkv": FetchShape(6144, 4096, 4),
    "o": FetchShape(4096, 4096, 4),
    "gate_up": FetchShape(28672, 4096, 1),
    "down": FetchShape(4096, 14336, 4),
}
H200, LAPTOP = 50.0, 13.0


def test_bytes_of_a_channel_are_those_of_four_bit_rows():
    assert [shape.row_bytes for shape in SHAPES.values()] == [3072, 2048, 14336, 2048]
    assert SHAPES["down"].fetched_bytes(8) == 8 * 14 * 2048
    assert FetchShape(100, 1536, 4).listed(8) == 12


def test_the_launches_found_best_by_hand_are_among_those_tried():
    """224 one-warp programs for gate_up; 32 of four warps for down, 12 to 24 for qkv, 8 to 16 for o."""
    tried = {kind: set(launches(shape, H200)) for kind, shape in SHAPES.items()}
    assert {112, 224} <= tried["gate_up"]
    assert 448 not in tried["gate_up"]
    assert {16, 32, 64} <= tried["down"]
    assert {12, 24} <= tried["qkv"]
    assert {8, 16} <= tried["o"]


def test_a_slow_link_needs_fewer_programs():
    for shape in SHAPES.values():
        fast, slow = launches(shape, H200), launches(shape, LAPTOP)
        assert max(slow) <= max(fast)
        assert min(slow) <= min(fast)
        for config in slow.values():
            flying = shape.segments * config.splits * config.rows * SEGMENT_BYTES
            assert flying <= 9.1 * LAPTOP * 1.13e3 or len(slow) == 1


def test_every_linear_has_a_way_to_fetch():
    for n_out, n_in, warps in ((8, 128, 16), (576, 576, 8), (960, 576, 8), (131072, 4096, 1)):
        assert launches(FetchShape(n_out, n_in, warps), H200)


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
        assert all(b <= max(1.15 * a, a + 1.6 * whole * 1024 / shape.n_in + 1) for a, b in pairwise(found))


def test_a_batch_of_gate_up_is_eight_channels():
    found = rungs(SHAPES["gate_up"], FetchConfig(16, 2), 30.0, H200)
    assert found[:6] == (1, 4, 8, 12, 16, 20)


def test_nothing_is_tried_that_the_link_cannot_bring():
    assert rungs(SHAPES["gate_up"], FetchConfig(16, 2), 0.5, H200) == ()
