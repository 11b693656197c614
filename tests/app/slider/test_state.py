"""The slider's state: moves, reports, and what may be shown of them."""

import pytest

from app.slider import DETENTS, Position, SliderState
from app.slider.position import LOSSLESS
from app.slider.state import OVERRUN_REPORTS, SETTLE_S, WRITING_S
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.app.slider.conftest import PATH, loaded, stats


def report(slider, clock, *, seconds=0.2, **fields):
    clock.now += seconds
    slider.measured(stats(**{"target": slider.position.pct, "lossless": slider.position.lossless, **fields}))


def test_steps_visit_every_detent_and_lossless_and_come_back(slider):
    slider.loaded(loaded(tuple(SlowdownPoint(pct, KChunk(i)) for i, pct in enumerate(DETENTS))))
    seen = [slider.position]
    while slider.step(1):
        seen.append(slider.position)
    assert seen == [*map(Position, DETENTS), LOSSLESS]
    while slider.step(-1):
        seen.append(slider.position)
    assert seen[6:] == [Position(d) for d in reversed(DETENTS)]


def test_steps_leave_out_detents_that_change_nothing(clock):
    slider = SliderState(clock=clock)
    slider.loaded(loaded((SlowdownPoint(0.0, KChunk()), *PATH[1:2], SlowdownPoint(7.0, KChunk(40)))))
    seen = [slider.position.pct]
    while slider.step(1) and not slider.position.lossless:
        seen.append(slider.position.pct)
    assert seen == [0.0, 2.5, 10.0]
    for pct, lower, higher in [(20, 2.5, LOSSLESS), (5, 0, 10), (1, 0, 2.5), (8, 2.5, LOSSLESS), (6, 0, 10)]:
        for direction, end in ((-1, lower), (1, higher)):
            slider.move_to(pct)
            slider.step(direction)
            assert slider.position == (end if end == LOSSLESS else Position(end))


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


@pytest.mark.parametrize(
    ("reason", "offers"),
    [
        ("m was not tuned on this machine yet", True),
        ("since the last tuning the driver changed", True),
        ("the tuning profile cannot be read (EIO)", True),
        ("the slider belongs to a local model; here a server answers", False),
        ("", True),
    ],
)
def test_tuning_is_offered_where_it_helps(reason, offers):
    state = SliderState()
    state.loaded(loaded(path=(), reason=reason))
    assert state.offers_tuning is offers


def test_the_target_outlives_a_crash_an_untuned_model_and_one_without_lossless():
    state = SliderState()
    state.loaded(loaded())
    state.move_lossless()
    state.unloaded("the engine is not running")
    state.loaded(loaded(lossless=False))
    assert state.position == Position(20.0)
    state.loaded(loaded(path=(), reason="not tuned"))
    assert state.position == Position()
    state.loaded(loaded())
    assert state.position == LOSSLESS
    state.move_to(7.5)
    state.unloaded("the model is loading")
    assert not state.move_to(3)
    state.loaded(loaded())
    assert state.position == Position(7.5)


def test_the_table_in_force(slider):
    for pct, table in [(0, PATH[0]), (1.7, PATH[0]), (1.8, PATH[1]), (5.9, PATH[1]), (20, PATH[2])]:
        slider.move_to(pct)
        assert slider.table == table.k_chunk


def test_a_report_counts_only_for_its_own_target(slider, clock):
    slider.move_to(5)
    report(slider, clock, measured=4.7)
    assert slider.current is not None
    slider.move_to(10)
    assert slider.current is None
    report(slider, clock, target=5.0, tokens=20)
    assert slider.current is None
    slider.move_lossless()
    assert slider.current is None


def test_figures_settle_after_a_move_in_mid_answer(slider, clock):
    report(slider, clock, tokens=10, measured=0.0)
    assert (slider.measured_pct, slider.measured_speed, slider.settling) == (0.0, 70.0, False)
    slider.move_to(5)
    report(slider, clock, tokens=20, measured=4.7, seconds=SETTLE_S - 0.1)
    assert (slider.measured_pct, slider.measured_speed, slider.settling) == (None, None, True)
    report(slider, clock, tokens=30, measured=None, seconds=0.2)
    assert (slider.measured_pct, slider.settling) == (None, True)
    report(slider, clock, tokens=40, measured=4.6, speed=66.0)
    assert (slider.measured_pct, slider.measured_speed, slider.settling) == (4.6, 66.0, False)


def test_an_answer_that_begins_after_the_move_needs_no_settling(slider, clock):
    report(slider, clock, tokens=10)
    slider.move_to(5)
    report(slider, clock, tokens=6, measured=4.7, prompt=50)
    assert slider.measured_pct == 4.7


def test_what_only_answers_a_move_measures_nothing_and_nothing_settles_for_ever(slider, clock):
    report(slider, clock, tokens=10, measured=0.0)
    slider.move_to(5)
    report(slider, clock, tokens=10, measured=0.0, seconds=SETTLE_S + 1)
    assert slider.current is not None
    assert slider.measured_pct is None
    clock.now += WRITING_S
    assert not slider.settling
    assert slider.tokens_per_s == 70.0


def test_speeds_are_foretold_from_settled_figures(slider, clock):
    assert slider.foretold(Position(10.0)) is None
    report(slider, clock, tokens=10, measured=0.0, speed=100.0)
    assert slider.foretold(Position(10.0)) == pytest.approx(100 / 1.06)
    slider.move_to(10)
    report(slider, clock, tokens=20, measured=6.0, speed=50.0)
    assert slider.foretold(Position()) == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("target", "measured", "above"),
    [(5.0, 4.0, False), (5.0, 7.4, False), (5.0, 8.0, True), (0.0, 1.9, False), (20.0, 31.0, True)],
)
def test_a_profile_that_fits_no_longer_is_noticed_when_it_lasts(slider, clock, target, measured, above):
    slider.move_to(target)
    for step in range(OVERRUN_REPORTS):
        assert not slider.overruns
        report(slider, clock, measured=measured, tokens=10 * (step + 1))
    assert slider.overruns is above
    report(slider, clock, measured=target, tokens=900)
    assert not slider.overruns


def test_reports_of_a_comparison_only_teach_speeds(slider, clock):
    slider.move_to(5)
    report(slider, clock, tokens=10, measured=4.0, speed=60.0)
    slider.lent = True
    samples = len(slider.times.samples)
    for tokens in (10, 60, 120):
        report(slider, clock, target=0.0, tokens=tokens, measured=0.0, speed=80.0, prompt=90, seconds=1)
    slider.lent = False
    assert (slider.tokens_per_s, slider.measured_pct) == (60.0, 4.0)
    assert len(slider.times.samples) == samples
    assert slider.speeds.base > 62.4
    # The answer to the move back tells of the comparison's tokens, which are none of the chat's.
    report(slider, clock, tokens=120, measured=0.0, speed=80.0, prompt=90)
    assert (slider.tokens_per_s, len(slider.times.samples)) == (60.0, samples)


def test_another_model_begins_anew(slider, clock):
    for tokens in (10, 60, 120):
        report(slider, clock, tokens=tokens, measured=0.0, seconds=1)
    assert slider.times.samples
    slider.loaded(loaded())
    assert not slider.times.samples
    assert slider.speeds.base is None
    assert slider.measured_pct is None


def test_auto_moves_and_says_so_and_the_hand_switches_it_off(slider, clock):
    moves = []
    slider.on_auto_move = lambda: moves.append(slider.position)
    slider.move_to(20)
    assert not slider.keep_speed(70.0)
    for tokens in range(10, 400, 10):
        report(slider, clock, tokens=tokens, measured=6.0, speed=66.0)
    assert moves[0].pct < 6.0
    assert slider.auto.on
    slider.move_to(2.5)
    assert not slider.auto.on
    assert slider.auto.floor == 70.0


def test_when_auto_is_switched_off_the_slider_is_where_the_user_had_it(slider, clock):
    slider.move_to(20)
    slider.keep_speed(70.0)
    for tokens in range(10, 400, 10):
        report(slider, clock, tokens=tokens, measured=6.0, speed=66.0)
    assert slider.position != Position(20.0)
    slider.keep_speed(60.0)
    assert slider.end_auto()
    assert (slider.position, slider.auto.on) == (Position(20.0), False)
    assert not slider.end_auto()


def test_a_wish_from_before_the_model_holds_where_it_can():
    state = SliderState(Position(20.0))
    state.want(LOSSLESS)
    state.loaded(loaded(lossless=False))
    assert state.position == Position(20.0)
    state.loaded(loaded())
    assert state.position == LOSSLESS


def test_auto_gives_what_is_free_as_soon_as_a_model_is_there():
    state = SliderState()
    assert not state.keep_speed(50.0)
    state.loaded(loaded())
    assert state.position == Position(1.7)
    assert state.keep_speed(60.0) is False
