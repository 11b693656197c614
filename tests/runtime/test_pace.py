import pytest

from runtime.pace import WINDOW_S, Pace


def pushed(*times):
    pace = Pace()
    for at in times:
        pace.push(at)
    return pace


def test_nothing_is_known_before_the_second_piece():
    assert (Pace().recent(), Pace().mean(5), Pace().first) == (0.0, 0.0, None)
    assert (pushed(1.0).recent(), pushed(1.0).mean(1)) == (0.0, 0.0)


def test_the_mean_goes_back_to_the_first_piece_and_the_recent_speed_does_not():
    slow, quick = [0.0, 1.0, 2.0, 3.0], [3.0 + at / 10 for at in range(1, 31)]
    pace = pushed(*slow, *quick)
    assert pace.count == 34
    assert pace.mean(34) == pytest.approx(33 / 6.0)
    assert pace.recent() == pytest.approx(10.0)
    assert pace.recent(per_piece=2.5) == pytest.approx(25.0)
    assert WINDOW_S < 3.0
