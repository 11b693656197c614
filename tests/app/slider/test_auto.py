"""Auto, by table and against engines with noise, drifts and wrong promises."""

import random
from collections import deque

import pytest

from app.slider import Auto, Path, Position, Speeds
from app.slider.auto import FLUSH_S, UP_S
from app.slider.position import LOSSLESS
from runtime.protocol.events import KChunk, SlowdownPoint
from tests.app.slider.conftest import stats

COSTS = (0, 0.6, 1.2, 1.9, 2.5, 3.4, 4.2, 5, 6, 7.5, 8.8, 10, 12, 14, 16, 18, 20)
PATH = Path(tuple(SlowdownPoint(cost, KChunk(i)) for i, cost in enumerate(COSTS)))
FREE = Path(tuple(SlowdownPoint(cost, KChunk(1 + i)) for i, cost in enumerate((0, 1.8, 6.0, 20.0))))
MINUTES = 60


class Engine:
    """Writes at `base` tokens/s, less what `lie` times the promised cost takes, and reports as a real one."""

    def __init__(self, base, noise=0.03, lie=1.0, share=0.5, seed=1, path=PATH, pause=0.0):
        self.base = base if callable(base) else lambda _: base
        self.noise, self.lie, self.share, self.path, self.pause = noise, lie, share, path, pause
        self.random, self.sway = random.Random(seed), 0.0
        self.now = self.below = self.total = 0.0
        self.moves = []

    def speed(self, position):
        cost = self.path.at(position.pct).slowdown_pct * self.lie
        return self.base(self.now) * (self.share if position.lossless else 1 / (1 + cost / 100))

    def run(self, auto, position, seconds, answer_s=60.0):
        """Let auto move it; gives the last position."""
        end = self.now + seconds
        while self.now < end:
            position = self._answer(auto, position, min(answer_s, end - self.now))
            self.now += self.pause
        return position

    def _answer(self, auto, position, seconds):
        end, times, count, told, heard = self.now + seconds, deque(), 0, self.now, 0
        while self.now < end:
            speed = self.speed(position)
            # Neighbouring tokens are slow together, as on a machine with other work.
            self.sway = 0.95 * self.sway + 0.22 * self.random.gauss(0, 1)
            took = max(1e-4, (1 + self.noise * (self.sway + self.random.gauss(0, 1))) / speed)
            self.now += took
            self.total += took
            self.below += took * (speed < auto.floor * 0.995)
            count += 1
            times.append(self.now)
            while len(times) > 2 and self.now - times[0] > 1.5:
                times.popleft()
            if self.now - told >= 0.2:
                told = self.now
                recent = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0
                cost = self.path.at(position.pct).slowdown_pct * self.lie + self.random.gauss(0, 0.3)
                said = stats(position.pct, max(cost, 0.0), count, position.lossless, recent)
                wanted = auto.reported(said, position, count - heard, self.now)
                heard = count
                if wanted != position:
                    self.moves.append((self.now, position, wanted))
                    position = wanted
        return position


FIVE = Position(5.0)


def started(floor, position=FIVE, path=PATH, lossless=False, speeds=None):
    auto = Auto()
    auto.model(path, lossless)
    return auto, auto.start(floor, position, speeds or Speeds())


def known(base, lossless=None):
    speeds = Speeds()
    speeds.base, speeds.lossless = base, lossless
    return speeds


@pytest.mark.parametrize(
    ("floor", "speeds", "has_lossless", "wanted"),
    [
        (50.0, known(100.0), False, Position(20.0)),
        (90.0, known(100.0), False, Position(6.0)),
        (99.0, known(100.0), False, Position(0.0)),
        (120.0, known(100.0), False, Position(0.0)),
        (40.0, known(100.0, 45.0), True, LOSSLESS),
        (44.0, known(100.0, 45.0), True, Position(20.0)),
        (40.0, known(100.0), True, LOSSLESS),
        (60.0, known(100.0), True, Position(20.0)),
        (50.0, Speeds(), True, Position(5.0)),
    ],
)
def test_where_it_begins(floor, speeds, has_lossless, wanted):
    assert started(floor, lossless=has_lossless, speeds=speeds)[1] == wanted


def test_what_is_free_is_given_even_when_the_floor_cannot_be_kept():
    assert started(500.0, Position(), FREE)[1] == Position(1.7)
    assert started(500.0, Position(), FREE, speeds=known(100.0))[1] == Position(1.7)
    auto, position = started(500.0, Position(20.0), FREE)
    position = Engine(100, path=FREE).run(auto, position, MINUTES)
    assert (position, auto.too_slow) == (Position(1.7), True)


def test_untuned_it_does_nothing():
    auto, position = started(50.0, Position(), Path())
    assert auto.reported(stats(0, 0.0, 50), position, 50, 1.0) == position == Position()


def test_off_it_does_nothing():
    auto, _ = started(90.0)
    auto.stop()
    assert not Engine(50).run(auto, Position(20.0), MINUTES).lossless
    assert not auto.on
    assert auto.floor == 90.0


def test_it_waits_for_figures_of_the_present_position():
    auto, position = started(90.0, Position(20.0))
    engine = Engine(100, noise=0.0)
    engine.run(auto, position, FLUSH_S + 1.0)
    assert not engine.moves
    engine.run(auto, position, 2.0)
    assert engine.moves[0][2].pct <= 8.8


def test_it_finds_the_best_position_and_stays_there():
    auto, position = started(90.0, Position(0.0))
    engine = Engine(100, noise=0.0)
    position = engine.run(auto, position, 5 * MINUTES)
    assert position == Position(6.0)
    assert len(engine.moves) == 1
    assert engine.moves[0][0] < FLUSH_S + 2 * UP_S


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("engine", "floor", "lowest", "highest", "moves"),
    [
        ({"base": 40}, 20, 20.0, 20.0, 1),
        ({"base": 40}, 36, 1.9, 8.8, 7),
        ({"base": 40}, 39.6, 0.0, 0.0, 1),
        ({"base": 40, "noise": 0.06}, 36, 0.0, 8.8, 16),
        ({"base": 40, "lie": 2.0}, 36, 0.0, 4.2, 8),
        ({"base": 2.0}, 1.8, 0.0, 8.8, 14),
        ({"base": 40, "pause": 20.0}, 36, 0.0, 8.8, 6),
    ],
    ids=["plenty", "tight", "hardly", "noisy", "wrong promise", "slow", "pauses"],
)
def test_it_keeps_the_floor_and_does_not_swing(seed, engine, floor, lowest, highest, moves):
    auto, position = started(floor)
    run = Engine(seed=seed, **engine)
    position = run.run(auto, position, 10 * MINUTES, answer_s=5.0 if "pause" in engine else 60.0)
    assert lowest <= position.pct <= highest
    assert len(run.moves) <= moves
    assert run.below / run.total < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_a_throttled_machine_is_relieved_at_once_and_quality_comes_back(seed):
    auto, position = started(30.0)
    engine = Engine(lambda now: 30.4 if 60 < now < 180 else 40.0, noise=0.02, seed=seed)
    position = engine.run(auto, position, 60)
    assert position == Position(20.0)
    position = engine.run(auto, position, 110)
    assert position.pct <= 1.2
    position = engine.run(auto, position, 60)
    assert position == Position(20.0)
    assert engine.below < 12
    assert len(engine.moves) <= 9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "ends"), [(0.6, LOSSLESS), (0.4, Position(20.0))])
def test_lossless_is_tried_once_and_kept_only_where_it_keeps_the_floor(seed, share, ends):
    auto, position = started(19.2, lossless=True)
    engine = Engine(40, share=share, seed=seed)
    position = engine.run(auto, position, 10 * MINUTES)
    assert position == ends
    assert sum(wanted.lossless for _, _, wanted in engine.moves) == 1
    assert engine.below / engine.total < 0.02


def test_lossless_is_not_tried_where_there_is_little_to_spare():
    auto, position = started(24.0, lossless=True)
    engine = Engine(40, share=0.9)
    assert engine.run(auto, position, 5 * MINUTES) == Position(20.0)


def test_a_slower_machine_ends_lossless():
    auto, position = started(19.2, lossless=True)
    engine = Engine(lambda now: 40.0 if now < 60 else 28.0, share=0.6, noise=0.01)
    engine.run(auto, position, 60)
    position = engine.run(auto, engine.moves[-1][2], 60)
    assert position == Position(20.0)


def test_a_higher_floor_counts_at_once():
    auto, position = started(50.0)
    position = Engine(100, noise=0.0).run(auto, position, 30)
    assert position == Position(20.0)
    assert auto.start(92.0, position, known(100.0)).pct == pytest.approx(4.2)
