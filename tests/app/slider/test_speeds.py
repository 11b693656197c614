"""Foretelling the speed of a position."""

import pytest

from app.slider import Path, Position, Speeds
from app.slider.position import LOSSLESS
from tests.app.slider.conftest import PATH, stats


def test_nothing_is_foretold_before_anything_was_measured():
    assert Speeds().at(Position(5.0), Path(PATH)) is None
    assert Speeds().at(LOSSLESS, Path(PATH)) is None


def test_the_base_follows_from_speed_and_cost_and_the_rest_from_the_path():
    speeds = Speeds()
    speeds.learn(stats(0.0, 25.0, speed=80.0), Path(PATH))
    assert speeds.base == pytest.approx(100.0)
    foretold = [speeds.at(Position(pct), Path(PATH)) for pct in (0, 1.7, 1.8, 5.9, 6.0, 20)]
    assert foretold == pytest.approx([100, 100, 100 / 1.018, 100 / 1.018, 100 / 1.06, 100 / 1.06])


def test_one_report_that_is_off_counts_little():
    speeds = Speeds()
    for _ in range(30):
        speeds.learn(stats(0, 0.0, speed=100.0), Path(PATH))
    speeds.learn(stats(0, 0.0, speed=50.0), Path(PATH))
    assert speeds.base == pytest.approx(90.0)
    for _ in range(30):
        speeds.learn(stats(0, 0.0, speed=50.0), Path(PATH))
    assert speeds.base == pytest.approx(50.0, rel=0.01)


@pytest.mark.parametrize(
    "report",
    [stats(5.0, None), stats(5.0, 1.0, tokens=3), stats(5.0, 1.0, speed=0.0)],
    ids=["cost unknown", "few tokens", "no speed"],
)
def test_what_says_nothing_is_not_learned(report):
    speeds = Speeds()
    speeds.learn(report, Path(PATH))
    assert speeds.base is None


def test_lossless_is_known_by_itself_and_leaves_the_base_alone():
    speeds = Speeds()
    speeds.learn(stats(0.0, 0.0, speed=100.0), Path(PATH))
    speeds.learn(stats(20.0, 0.0, speed=30.0, lossless=True), Path(PATH))
    assert (speeds.base, speeds.at(LOSSLESS, Path(PATH))) == (100.0, 30.0)


@pytest.mark.parametrize(
    ("measured", "at_6", "at_1_8"),
    [(6.0, 6.0, 1.8), (3.0, 3.0, 0.9), (12.0, 12.0, 3.6)],
)
def test_what_corrections_cost_more_or_less_than_promised_holds_for_every_position(measured, at_6, at_1_8):
    speeds = Speeds()
    speeds.learn(stats(10.0, measured, speed=100 / (1 + measured / 100)), Path(PATH))
    foretold = [speeds.at(Position(pct), Path(PATH)) for pct in (0, 1.8, 6)]
    assert foretold == pytest.approx([100, 100 / (1 + at_1_8 / 100), 100 / (1 + at_6 / 100)])


def test_where_nothing_is_promised_nothing_is_learned_about_promises():
    speeds = Speeds()
    speeds.learn(stats(0.0, 3.0), Path(PATH))
    assert speeds.excess is None
