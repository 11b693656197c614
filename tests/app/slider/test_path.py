"""What a tuned path promises."""

import pytest

from app.slider import Path
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.app.slider.conftest import PATH


def path(*points):
    return Path(tuple(SlowdownPoint(pct, KChunk(k)) for pct, k in points))


@pytest.mark.parametrize(("pct", "index"), [(0, 0), (1.7, 0), (1.8, 1), (5.9, 1), (6.0, 2), (20, 2)])
def test_a_table_is_in_force_from_its_own_slowdown_on(pct, index):
    assert Path(PATH).at(pct) == PATH[index]


def test_before_the_first_point_nothing_is_corrected():
    assert path((2.0, 8)).at(1.9) == SlowdownPoint(0.0, KChunk())
    assert Path().at(20) == SlowdownPoint(0.0, KChunk())


@pytest.mark.parametrize(
    ("points", "free_until", "last_free", "first_gain"),
    [
        ([(0, 8), (1.8, 16), (6, 32)], 1.8, 1.7, 0.0),
        ([(0, 0), (3, 8)], 0.0, 0.0, 3.0),
        ([(0, 0), (0.04, 8), (1.25, 16)], 1.25, 1.2, 0.04),
        ([(0, 8)], 20.0, 20.0, 0.0),
        ([(0, 0)], 0.0, 0.0, None),
        ([], 0.0, 0.0, None),
    ],
)
def test_the_free_region(points, free_until, last_free, first_gain):
    found = path(*points)
    assert (found.free_until, found.last_free, found.first_gain) == (free_until, last_free, first_gain)
    assert found.at(found.last_free).slowdown_pct <= 0.05


def test_every_table_has_a_stop_where_it_is_in_force_and_none_dearer():
    found = path((0, 0), (0.93, 1), (1.8, 2), (6.01, 3), (19.99, 4))
    assert found.stops == (0.0, 1.0, 1.8, 6.1, 20.0)
    assert [found.at(stop).k_chunk.qkv for stop in found.stops] == [0, 1, 2, 3, 4]


def test_the_first_stop_gives_what_is_free():
    assert Path(PATH).stops == (1.7, 1.8, 6.0)
