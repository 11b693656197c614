"""The slider's state and geometry."""

import pytest

from app.slider import DETENTS, Position, Scale, SliderState
from runtime.protocol.events import KChunk, Loaded, SlowdownPoint, Stats

PATH = (
    SlowdownPoint(0.0, KChunk(8, 0, 4, 0)),
    SlowdownPoint(1.8, KChunk(16, 0, 8, 0)),
    SlowdownPoint(6.0, KChunk(32, 8, 16, 8)),
)


def loaded(path=PATH, lossless=True, reason=""):
    return Loaded("m", "rtn4", "cpu", 2048, 1, path, reason, lossless)


def stats(target, measured=1.5, tokens=10, lossless=False):
    return Stats(70.0, 0.1, 5, 0, tokens, 15, 2048, target, measured, KChunk(1), 99, lossless)


@pytest.fixture
def slider():
    state = SliderState()
    state.loaded(loaded())
    return state


def test_steps_visit_every_detent_and_lossless_and_come_back(slider):
    seen = [slider.position]
    while slider.step(1):
        seen.append(slider.position)
    assert seen == [*map(Position, DETENTS), Position(20.0, lossless=True)]
    while slider.step(-1):
        seen.append(slider.position)
    assert seen[6:] == [Position(d) for d in reversed(DETENTS)]


def test_fine_steps_are_half_a_percent(slider):
    slider.step(1, fine=True)
    slider.step(1, fine=True)
    slider.step(1, fine=True)
    assert slider.position.pct == 1.5
    slider.step(1)
    assert slider.position.pct == 2.5
    slider.step(-1, fine=True)
    slider.step(-1)
    assert slider.position.pct == 0


def test_values_are_kept_inside(slider):
    slider.move_to(99)
    assert slider.position == Position(20.0)
    slider.move_to(-3)
    assert slider.position == Position(0.0)
    with pytest.raises(ValueError, match=r"0\.\.20"):
        Position(20.1)


def test_no_lossless_stop_where_it_does_not_fit():
    state = SliderState(Position(20.0))
    state.loaded(loaded(lossless=False))
    assert not state.step(1)
    assert not state.move_lossless()
    assert state.position == Position(20.0)


def test_untuned_is_disabled_with_the_reason():
    state = SliderState(Position(5.0))
    state.loaded(loaded(path=(), reason="the driver changed"))
    assert (state.enabled, state.reason, state.position) == (False, "the driver changed", Position(0.0))
    assert not state.step(1)


def test_table_in_force(slider):
    for pct, table in [(0, PATH[0]), (1.7, PATH[0]), (1.8, PATH[1]), (5.9, PATH[1]), (20, PATH[2])]:
        slider.move_to(pct)
        assert slider.table == table.k_chunk


def test_free_region_ends_where_the_first_costly_table_begins(slider):
    assert slider.free_until == 1.8
    assert slider.first_gain == 0.0


def test_no_free_region_when_nothing_is_corrected_at_zero():
    state = SliderState()
    state.loaded(loaded(path=(SlowdownPoint(0, KChunk()), SlowdownPoint(3, KChunk(8)))))
    assert state.free_until == 0
    assert state.first_gain == 3


def test_a_measurement_counts_only_for_its_own_target(slider):
    slider.move_to(5)
    slider.measured(stats(5.0, 4.7))
    assert slider.current is not None
    assert slider.current.slowdown_measured_pct == 4.7
    slider.move_to(10)
    assert slider.current is None
    slider.measured(stats(10.0, 9.1, tokens=0))
    assert slider.current is not None
    assert slider.tokens_per_s == 70.0
    slider.move_lossless()
    assert slider.current is None


@pytest.mark.parametrize("cells", [12, 30, 78, 200])
@pytest.mark.parametrize("lossless", [False, True])
def test_every_detent_can_be_clicked(cells, lossless):
    scale = Scale(cells, lossless)
    positions = [Position(d) for d in DETENTS] + ([Position(20.0, True)] if lossless else [])
    for position in positions:
        assert 0 <= scale.cell(position) < cells
        assert scale.at(scale.cell(position)) == position


def test_clicks_are_monotonic_and_cover_the_range():
    scale = Scale(80)
    values = [scale.at(cell).pct for cell in range(-5, 90)]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 20.0)
    assert len(set(values)) > 50


def test_labels_stand_below_their_detents():
    scale = Scale(80)
    line = scale.labels(("0", "2.5", "5", "10", "20 %"))
    assert len(line) == 80
    assert line[scale.cell(Position(5.0))] == "5"
    assert line.split() == ["0", "2.5", "5", "10", "20", "%"]


def test_labels_that_collide_are_left_out():
    assert "2.5" not in Scale(8).labels(("0", "2.5", "5", "10", "20 %"))


@pytest.mark.parametrize(
    ("target", "measured", "overruns"),
    [(5.0, 4.0, False), (5.0, 7.4, False), (5.0, 8.0, True), (0.0, 1.9, False), (20.0, 31.0, True)],
)
def test_a_profile_that_fits_no_longer_is_noticed(target, measured, overruns):
    state = SliderState(Position(target))
    state.loaded(Loaded("m", "rtn4", "CPU", 64, 1, (SlowdownPoint(0.0, KChunk()),)))
    state.measured(Stats(9.0, 0.1, 3, 0, 9, 12, 64, target, measured, KChunk(8, 8, 8, 8)))
    assert state.overruns is overruns
