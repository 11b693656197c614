"""The slider's state: the target, the tuned path behind it, and what the engine last measured."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.slider.auto import Auto
from app.slider.path import Path
from app.slider.position import LOSSLESS, Position
from app.slider.speeds import Speeds
from app.slider.times import Progress, TokenTimes
from runtime.protocol.events import KChunk, Loaded, Stats

OVERRUN_PCT = 2.0
# So many reports in a row must be above the target before it is said: two seconds of writing.
OVERRUN_REPORTS = 10
# The engine's speed is of the last 1.5 s; until then it is partly of the position before.
SETTLE_S = 1.5
# Without new tokens for so long, nothing is being written that could settle.
WRITING_S = 3.0


class SliderState:
    """Takes the engine's reports and the user's moves. `lent`: reports are of a comparison, not of a chat.

    `on_auto_move` is called when auto has moved the target. `clock` gives seconds. `on_cpu`: the target is a
    share of the low-bit products alone, which are a part of a token's time there.
    """

    def __init__(self, position: Position | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.position = self._wanted = self._by_hand = position or Position()
        self.path, self.has_lossless, self.reason = Path(), False, "no model is loaded"
        self.on_cpu = False
        self.tokens_per_s: float | None = None
        self.lent = False
        self.auto, self.speeds, self.times = Auto(), Speeds(), TokenTimes()
        self.on_auto_move: Callable[[], None] = lambda: None
        self._clock = clock
        self._progress = Progress()
        self._stats: Stats | None = None
        self._written_at = float("-inf")
        self._moved_at, self._settled, self._above = clock(), False, 0

    @property
    def enabled(self) -> bool:
        """Whether moving it can change anything: a valid profile exists."""
        return bool(self.path.points)

    @property
    def offers_tuning(self) -> bool:
        """Whether it is off for want of a tuning."""
        return not self.enabled and ("tuned" in self.reason or "tuning" in self.reason)

    # The engine

    def loaded(self, event: Loaded) -> None:
        """Take over the path of a model that was just loaded. The target is kept where it exists there."""
        self.path, self.has_lossless = Path(event.path), event.lossless
        self.on_cpu = event.device.lower().startswith("cpu")
        self.reason = "" if event.path else event.untuned_reason or "this model is not tuned on this device"
        self._stats, self.speeds = None, Speeds()
        self.times.clear()
        self.auto.model(self.path, self.has_lossless)
        self.position = self._possible(self._wanted)
        if self.auto.on and self.enabled:
            self.position = self.auto.at_least_free(self.position)
        self._unsettle()

    def want(self, position: Position) -> None:
        """Before a model is there: where to stand once one is."""
        self.position = self._wanted = self._by_hand = position

    def refused(self) -> None:
        """The engine stays where it was, and so does the target."""
        self.position = self._wanted = Position.of(self._stats) if self._stats else Position()
        self._unsettle()

    def unloaded(self, reason: str) -> None:
        """No model: nothing to slide. The target is kept for the next one."""
        self.path, self.has_lossless, self.reason = Path(), False, reason
        self._stats = self.tokens_per_s = None
        self._unsettle()

    def measured(self, stats: Stats) -> None:
        """Take a report. Only tokens written since the one before it say anything about the target."""
        now = self._clock()
        new, first = self._progress.push(stats)
        if self.lent:
            if new:
                self.speeds.learn(stats, self.path)
            return
        self._stats = stats
        if not new:
            return
        self.tokens_per_s = stats.decode_tokens_per_s
        self._written_at = now
        if first:
            # The engine's window begins with this answer, so it knows no position before.
            self._moved_at = float("-inf")
        self.times.push(stats.completion_tokens, Position.of(stats), now, first)
        if self.current is not None:
            self._take(stats, new, now)

    def _take(self, stats: Stats, new: int, now: float) -> None:
        """A report of new tokens at the target."""
        self._settled = self._settled or now - self._moved_at >= SETTLE_S
        if self._settled:
            self.speeds.learn(stats, self.path)
            self._above = self._above + 1 if _above_target(stats) else 0
        wanted = self.auto.reported(stats, self.position, new, now)
        if self._set(wanted):
            self.on_auto_move()

    # Moves

    def move_to(self, pct: float) -> bool:
        """Set the target, kept within 0..20 and rounded to 0.1; whether it changed."""
        return self._move(Position.near(pct))

    def move_lossless(self) -> bool:
        """Go to the stop beyond the right end where the device holds INT8-X; whether it changed."""
        return self.has_lossless and self._move(LOSSLESS)

    def step(self, direction: int, fine: bool = False) -> bool:
        """To the next detent that changes anything, or by half a percent; at the right end lies lossless."""
        stops = self.path.next_detents(self.position.pct)
        return self._move(self.position.step(direction, fine, self.has_lossless, stops))

    def keep_speed(self, floor: float) -> bool:
        """Let auto keep so many tokens/s from now on; whether the target changed at once."""
        if not self.auto.on:
            self._by_hand = self._wanted
        return self._set(self.auto.start(floor, self.position, self.speeds))

    def end_auto(self) -> bool:
        """Auto lets go, and the target is again where the user had it; whether that changed it."""
        if not self.auto.on:
            return False
        self.auto.stop()
        return self._set(self._possible(self._by_hand))

    def _move(self, position: Position) -> bool:
        """The user's hand: auto lets go."""
        moved = self._set(position)
        if moved:
            self.auto.stop()
        return moved

    def _set(self, position: Position) -> bool:
        if not self.enabled or position == self.position:
            return False
        self.position = self._wanted = position
        self._unsettle()
        return True

    def _possible(self, position: Position) -> Position:
        if not self.enabled:
            return Position()
        return Position(position.pct) if position.lossless and not self.has_lossless else position

    def _unsettle(self) -> None:
        self._moved_at, self._settled, self._above = self._clock(), False, 0

    # What is shown

    @property
    def table(self) -> KChunk:
        """Corrected channels per 1024 that the tuned path promises at the target."""
        return self.path.at(self.position.pct).k_chunk

    @property
    def current(self) -> Stats | None:
        """The last report, if it is of the present target."""
        stats = self._stats
        return stats if stats is not None and Position.of(stats) == self.position else None

    @property
    def measured_pct(self) -> float | None:
        """What corrections cost at the target; None until enough was written there."""
        return self.current.slowdown_measured_pct if self.current and self._settled else None

    @property
    def settling(self) -> bool:
        """Whether an answer is being written whose figures are not yet those of the target."""
        writing = self._clock() - self._written_at < WRITING_S
        return writing and self.measured_pct is None

    @property
    def measured_speed(self) -> float | None:
        """Tokens/s measured at the target; None until enough was written there."""
        return self.tokens_per_s or None if self.current and self._settled else None

    def foretold(self, position: Position) -> float | None:
        """About how many tokens/s a position brings; None until some were measured."""
        return self.speeds.at(position, self.path)

    @property
    def overruns(self) -> bool:
        """Whether corrections cost clearly more than promised, for a while: the profile fits no longer."""
        return self._above >= OVERRUN_REPORTS


def _above_target(stats: Stats) -> bool:
    if stats.lossless or stats.slowdown_measured_pct is None:
        return False
    target = stats.slowdown_target_pct
    return stats.slowdown_measured_pct > target + max(OVERRUN_PCT, target / 2)
